// Lets a CPU build of torch believe that there is a CUDA device: it switches between devices that do nothing, and chooses
// kernels for attention as a build for CUDA does.
#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <c10/core/impl/FakeGuardImpl.h>

C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::FakeGuardImpl<c10::DeviceType::CUDA>);

namespace at {
struct CUDAHooks : CUDAHooksInterface {
  CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex deviceCount() const override { return 1; }
};
REGISTER_CUDA_HOOKS(CUDAHooks);

namespace accelerator {
// That of a CPU build knows from when it was compiled that there is none.
std::optional<c10::DeviceType> getAccelerator(bool) { return c10::DeviceType::CUDA; }
}  // namespace accelerator
}  // namespace at

namespace {
using namespace sdp;

// What the rules of all kernels share is torch's own (sdp_utils_cpp.h). What is in its build for CUDA only is said again
// here, for torch 2.13 and a GPU from Ampere on: widths, formats, masks, and who shares heads.
bool flash(const sdp_params& p) {
  const auto width = p.query.size(-1);
  return check_runtime_disabled_flash(p, false) && check_tensor_shapes(p, false) && check_for_attn_mask(p, false) &&
      width <= 256 && width == p.key.size(-1) && width == p.value.size(-1) &&
      (!p.is_causal || p.query.size(-2) == p.key.size(-2)) &&
      check_tensor_dtype(p, std::array{at::kHalf, at::kBFloat16}, false) &&
      check_batch_size_and_num_heads_dense<true>(p, false) && check_nonzero_sequence_lengths_dense(p, false) &&
      check_last_dim_stride_equals_1_dense<true>(p, false);
}

bool efficient(const sdp_params& p) {
  const auto aligned = 16 / p.query.element_size();  // tensor cores read 16 bytes
  return check_runtime_disabled_mem_efficient(p, false) && check_tensor_shapes(p, false) &&
      p.query.size(-1) == p.key.size(-1) && p.query.size(-1) % aligned == 0 && p.value.size(-1) % aligned == 0 &&
      check_tensor_dtype(p, std::array{at::kHalf, at::kBFloat16, at::kFloat}, false) &&
      check_nonzero_sequence_lengths_dense(p, false) && check_last_dim_stride_equals_1_dense<false>(p, false) &&
      check_batch_size_and_num_heads_dense<false>(p, false);
}

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double dropout, bool causal, std::optional<double>, bool grouped) {
  const sdp_params p{query, key, value, mask, dropout, causal, grouped};
  for (const auto kernel : at::globalContext().sDPPriorityOrder()) {
    if ((kernel == SDPBackend::flash_attention && flash(p)) ||
        (kernel == SDPBackend::efficient_attention && efficient(p)) ||
        (kernel == SDPBackend::math && at::globalContext().userEnabledMathSDP())) {
      return static_cast<int64_t>(kernel);
    }
  }
  return static_cast<int64_t>(SDPBackend::error);
}

const auto registered = (at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose), true);
}  // namespace
