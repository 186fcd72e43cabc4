"""Pure functions from plain arguments to Matplotlib figures, each with a caption and alt text.

A figure needs no display, no global state and no learner's variables, so it can be tested, drawn in a widget
at every move of a slider, and stored in a notebook.
"""

from lmcourse.plots.attention.costs import attention_roofline, score_matrix_bytes
from lmcourse.plots.attention.look import attention_playground, head_gallery
from lmcourse.plots.attention.masks import mask_zoo, receptive_field
from lmcourse.plots.attention.scale import softmax_saturation
from lmcourse.plots.attention.sharing import cache_against_context, shared_keys
from lmcourse.plots.autograd.curves import gaussian_loss, gradient_check_error, two_paths
from lmcourse.plots.autograd.graph import computation_graph, graph_step
from lmcourse.plots.autograd.tensors import batch_gradients, layernorm_gradient, saved_for_backward, three_matmuls
from lmcourse.plots.display import install, mimebundle
from lmcourse.plots.feed_forward.activations import activation_explorer, activation_zoo, universal_fit
from lmcourse.plots.feed_forward.cost import elementwise_roofline
from lmcourse.plots.feed_forward.evidence import ablation_losses, glue_scores
from lmcourse.plots.feed_forward.gates import gate_surface
from lmcourse.plots.feed_forward.sizes import matched_parameters, ratio_trade, width_ratios
from lmcourse.plots.floating_point.bits import bit_pattern, code_grid
from lmcourse.plots.floating_point.memory import dtype_bytes
from lmcourse.plots.floating_point.precision import gradient_histogram, quantisation_error, running_sums
from lmcourse.plots.floating_point.ranges import number_line, range_precision_map, significant_digits, spacing
from lmcourse.plots.floating_point.softmax import naive_softmax_outcome, softmax_bars, softmax_overflow
from lmcourse.plots.flops.backward import backward_bars, recompute_bars
from lmcourse.plots.flops.budget import training_budget
from lmcourse.plots.flops.generation import generation_cost
from lmcourse.plots.flops.landmarks import training_landmarks
from lmcourse.plots.flops.parts import attention_by_length, flops_by_part
from lmcourse.plots.flops.peaks import clock_mistakes, one_rate_many_peaks
from lmcourse.plots.flops.products import elementwise_share, matmul_cube
from lmcourse.plots.flops.rules import six_n_gap
from lmcourse.plots.gpu_timing.chips import moving_time, ridge_points
from lmcourse.plots.gpu_timing.clock import launch_queue, timing_spread
from lmcourse.plots.gpu_timing.roofline import measured_roofline, product_intensity
from lmcourse.plots.gpu_timing.steps import runtime_shares, speed_ladder, utilisation_by_batch
from lmcourse.plots.memory.budget import memory_budget
from lmcourse.plots.memory.devices import memory_gpt3, memory_tensor_parallel
from lmcourse.plots.memory.growth import memory_break_even, memory_growth, memory_knobs
from lmcourse.plots.memory.states import memory_fits, memory_states
from lmcourse.plots.memory.tensors import memory_kept
from lmcourse.plots.positions.history import position_timeline
from lmcourse.plots.positions.relative import alibi_heads, alibi_reach, relative_bands, slopes_by_head, t5_buckets
from lmcourse.plots.positions.rotary import context_stretch, pair_layouts, rotating_pair, rotation_clocks
from lmcourse.plots.positions.scores import nope_estimate, position_scores, scheme_scores
from lmcourse.plots.positions.waves import position_heatmap, sine_circle, two_waves, wavelengths
from lmcourse.plots.stability.gradients import deaf_weights, gradient_spikes, loss_scale_history
from lmcourse.plots.stability.map import hot_spots, norm_positions
from lmcourse.plots.stability.runs import side_by_side, vital_signs
from lmcourse.plots.stability.scores import score_growth
from lmcourse.plots.stability.softmax import soft_cap_curve, softmax_under_attack
from lmcourse.plots.style import PALETTE, alt_text, describe, new_axes, new_canvas, new_figure, png
from lmcourse.plots.training import run_curves, training_curves

__all__ = [
    "PALETTE",
    "ablation_losses",
    "activation_explorer",
    "activation_zoo",
    "alibi_heads",
    "alibi_reach",
    "alt_text",
    "attention_by_length",
    "attention_playground",
    "attention_roofline",
    "backward_bars",
    "batch_gradients",
    "bit_pattern",
    "cache_against_context",
    "clock_mistakes",
    "code_grid",
    "computation_graph",
    "context_stretch",
    "deaf_weights",
    "describe",
    "dtype_bytes",
    "elementwise_roofline",
    "elementwise_share",
    "flops_by_part",
    "gate_surface",
    "gaussian_loss",
    "generation_cost",
    "glue_scores",
    "gradient_check_error",
    "gradient_histogram",
    "gradient_spikes",
    "graph_step",
    "head_gallery",
    "hot_spots",
    "install",
    "launch_queue",
    "layernorm_gradient",
    "loss_scale_history",
    "mask_zoo",
    "matched_parameters",
    "matmul_cube",
    "measured_roofline",
    "memory_break_even",
    "memory_budget",
    "memory_fits",
    "memory_gpt3",
    "memory_growth",
    "memory_kept",
    "memory_knobs",
    "memory_states",
    "memory_tensor_parallel",
    "mimebundle",
    "moving_time",
    "naive_softmax_outcome",
    "new_axes",
    "new_canvas",
    "new_figure",
    "nope_estimate",
    "norm_positions",
    "number_line",
    "one_rate_many_peaks",
    "pair_layouts",
    "png",
    "position_heatmap",
    "position_scores",
    "position_timeline",
    "product_intensity",
    "quantisation_error",
    "range_precision_map",
    "ratio_trade",
    "receptive_field",
    "recompute_bars",
    "relative_bands",
    "ridge_points",
    "rotating_pair",
    "rotation_clocks",
    "run_curves",
    "running_sums",
    "runtime_shares",
    "saved_for_backward",
    "scheme_scores",
    "score_growth",
    "score_matrix_bytes",
    "shared_keys",
    "side_by_side",
    "significant_digits",
    "sine_circle",
    "six_n_gap",
    "slopes_by_head",
    "soft_cap_curve",
    "softmax_bars",
    "softmax_overflow",
    "softmax_saturation",
    "softmax_under_attack",
    "spacing",
    "speed_ladder",
    "t5_buckets",
    "three_matmuls",
    "timing_spread",
    "training_budget",
    "training_curves",
    "training_landmarks",
    "two_paths",
    "two_waves",
    "universal_fit",
    "utilisation_by_batch",
    "vital_signs",
    "wavelengths",
    "width_ratios",
]
