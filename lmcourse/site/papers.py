"""Link titles under "Further reading" to their papers, and names in the package to their source."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

READING = "## Further reading"

_TITLE = re.compile(r"(?<!\*)\*([^*]+)\*(?!\*)")
_NAME = re.compile(r"(?<!\[)`(lmcourse[./][\w./]*)`")

ARXIV = {
    "2 OLMo 2 Furious": "2501.00656",
    "A study of BFLOAT16 for deep learning training": "1905.12322",
    "Accelerating large language model decoding with speculative sampling": "2302.01318",
    "Adam": "1412.6980",
    "An empirical model of large-batch training": "1812.06162",
    "Attention is all you need": "1706.03762",
    "Attention is not explanation": "1902.10186",
    "Automatic differentiation in machine learning: a survey": "1502.05767",
    "Chinchilla scaling: a replication attempt": "2404.10102",
    "Data movement is all you need: a case study on optimizing transformers": "2007.00072",
    "Decoupled weight decay regularization": "1711.05101",
    "Deep learning with limited numerical precision": "1502.02551",
    "DeepSeek-V2": "2405.04434",
    "DeepSeek-V3": "2412.19437",
    "Delving deep into rectifiers": "1502.01852",
    "Do Transformer modifications transfer across implementations and applications?": "2102.11972",
    "Do all languages cost the same?": "2305.13707",
    "Effective approaches to attention-based neural machine translation": "1508.04025",
    "Efficient large-scale language model training on GPU clusters": "2104.04473",
    "Efficient large-scale language model training on GPU clusters using Megatron-LM": "2104.04473",
    "Efficient memory management for large language model serving with PagedAttention": "2309.06180",
    "Efficient streaming language models with attention sinks": "2309.17453",
    "Efficiently scaling transformer inference": "2211.05102",
    "Exploring the limits of transfer learning": "1910.10683",
    "Exposure bias versus self-recovery": "1905.10617",
    "Extending context window of large language models via positional interpolation": "2306.15595",
    "FP8 formats for deep learning": "2209.05433",
    "Fast inference from transformers via speculative decoding": "2211.17192",
    "Fast transformer decoding: one write-head is all you need": "1911.02150",
    "Fishing for Magikarp": "2405.05417",
    "FlashAttention": "2205.14135",
    "FlashAttention: fast and memory-efficient exact attention with IO-awareness": "2205.14135",
    "GLU variants improve Transformer": "2002.05202",
    "GPipe": "1811.06965",
    "GQA": "2305.13245",
    "Gated delta networks": "2412.06464",
    "Gaussian error linear units": "1606.08415",
    "Generating long sequences with sparse transformers": "1904.10509",
    "Gradient descent on neural networks typically occurs at the edge of stability": "2103.00065",
    "Heavy-tailed class imbalance and why Adam outperforms gradient descent on language models": "2402.19449",
    "Hierarchical neural story generation": "1805.04833",
    "In-context learning and induction heads": "2209.11895",
    "Infini-gram: scaling unbounded n-gram language models to a trillion tokens": "2401.17377",
    "Issues in evaluating semantic spaces using word analogies": "1606.07736",
    "KIVI: a tuning-free asymmetric 2bit quantization for KV cache": "2402.02750",
    "Language model tokenizers introduce unfairness between languages": "2305.15425",
    "Layer normalization": "1607.06450",
    "Linear transformers are secretly fast weight programmers": "2102.11174",
    "Low-rank bottleneck": "2002.07028",
    "Mamba": "2312.00752",
    "Megatron-LM": "1909.08053",
    "Methods of improving LLM training stability": "2410.16682",
    "MiniCPM": "2404.06395",
    "Mixed precision training": "1710.03740",
    "Mixtral of experts": "2401.04088",
    "Neural machine translation by jointly learning to align and translate": "1409.0473",
    "Neural machine translation of rare words with subword units": "1508.07909",
    "On NMT search errors and model errors: cat got your tongue?": "1908.10090",
    "On layer normalization in the transformer architecture": "2002.04745",
    "On the difficulty of training recurrent neural networks": "1211.5063",
    "Online normalizer calculation for softmax": "1805.02867",
    "PaLM": "2204.02311",
    "Peri-LN": "2502.02732",
    "PipeDream": "1806.03377",
    "PyTorch: an imperative style, high-performance deep learning library": "1912.01703",
    "Reconciling Kaplan and Chinchilla scaling laws": "2406.12907",
    "Reducing activation recomputation in large transformer models": "2205.05198",
    "Repeat after me": "2402.01032",
    "Resolving discrepancies in compute-optimal scaling of language models": "2406.19146",
    "Ring attention": "2310.01889",
    "RoFormer: enhanced transformer with rotary position embedding": "2104.09864",
    "Root mean square layer normalization": "1910.07467",
    "Scale efficiently": "2109.10686",
    "Scaling data-constrained language models": "2305.16264",
    "Scaling laws": "2001.08361",
    "Scaling laws and compute-optimal training beyond fixed training durations": "2405.18392",
    "Scaling laws for neural language models": "2001.08361",
    "Scaling laws with vocabulary": "2407.13623",
    "Scaling vision transformers to 22 billion parameters": "2302.05442",
    "Scheduled sampling": "1506.03099",
    "Searching for activation functions": "1710.05941",
    "Self-attention with relative position representations": "1803.02155",
    "Sequence level training with recurrent neural networks": "1511.06732",
    "Sequence to sequence learning with neural networks": "1409.3215",
    "Sharp nearby, fuzzy far away": "1805.04623",
    "SliceGPT": "2401.15024",
    "Small-scale proxies for large-scale transformer training instabilities": "2309.14322",
    "Stabilizing transformer training by preventing attention entropy collapse": "2303.06296",
    "Subword regularization": "1804.10959",
    "Switch Transformers": "2101.03961",
    "The Llama 3 herd of models": "2407.21783",
    "The curious case of neural text degeneration": "1904.09751",
    "The impact of positional encoding on length generalization in transformers": "2305.19466",
    "Tokenization counts: the impact of tokenization on arithmetic in frontier LLMs": "2402.14903",
    "Train short, test long": "2108.12409",
    "Training compute-optimal large language models": "2203.15556",
    "Training deep nets with sublinear memory cost": "1604.06174",
    "Transformer-XL": "1901.02860",
    "Transformers without normalization": "2503.10622",
    "Tuning large neural networks via zero-shot hyperparameter transfer": "2203.03466",
    "Turning up the heat: min-p sampling": "2407.01082",
    "Understanding the difficulty of training transformers": "2004.08249",
    "Using the output embedding to improve language models": "1608.05859",
    "What does BERT look at?": "1906.04341",
    "Why do we need weight decay in modern deep learning?": "2310.04415",
    "YaRN: efficient context window extension of large language models": "2309.00071",
    "ZeRO": "1910.02054",
    "ZeRO: memory optimizations toward training trillion parameter models": "1910.02054",
}
"""arXiv identifiers by title, in the notebooks' spelling."""

DOI = {
    "A mathematical theory of communication": "10.1002/j.1538-7305.1948.tb01338.x",
    "Bandwidth optimal all-reduce algorithms": "10.1016/j.jpdc.2008.09.002",
    "Evaluating Derivatives": "10.1137/1.9780898717761",
    "Finding structure in time": "10.1207/s15516709cog1402_1",
    "Learning representations by back-propagating errors": "10.1038/323533a0",
    "Learning to forget": "10.1162/089976600300015015",
    "Long short-term memory": "10.1162/neco.1997.9.8.1735",
    "Prediction and entropy of printed English": "10.1002/j.1538-7305.1951.tb01366.x",
    "Roofline: an insightful visual performance model for multicore architectures": "10.1145/1498765.1498785",
    "Some methods of speeding up the convergence of iteration methods": "10.1016/0041-5553(64)90137-5",
    "Standard for Floating-Point Arithmetic": "10.1109/IEEESTD.2019.8766229",
    "The generation of optimal code for arithmetic expressions": "10.1145/321607.321620",
    "Validity of the single processor approach to achieving large scale computing capabilities": (
        "10.1145/1465482.1465560"
    ),
    "What every computer scientist should know about floating-point arithmetic": "10.1145/103162.103163",
    "Why momentum really works": "10.23915/distill.00006",
}
"""DOIs of publications that are not on arXiv, by title."""


def link_papers(text: str) -> str:
    """Return a cell's text with links for all titles in its reading list whose papers are known."""

    def linked(title: re.Match[str]) -> str:
        name = " ".join(title[1].split())
        if name in ARXIV:
            return f"[{title[0]}](https://arxiv.org/abs/{ARXIV[name]})"
        return f"[{title[0]}](<https://doi.org/{DOI[name]}>)" if name in DOI else title[0]

    before, heading, reading = text.partition(READING)
    return before + heading + _TITLE.sub(linked, reading)


def link_sources(text: str, repository: str) -> str:
    """Return a text with names of the package, such as `lmcourse/nn/` or `lmcourse.nn.attend`, linked to their source.

    The text does not change if there is no repository, or for a name that is not a file, a folder or defined in a
    module.
    """

    def linked(name: re.Match[str]) -> str:
        place = _source_of(name[1])
        return f"[{name[0]}]({repository}/blob/main/{place})" if repository and place else name[0]

    return _NAME.sub(linked, text)


def _source_of(name: str) -> str:
    """Return the file or folder of a name of the package, from the course's folder; "" if there is none."""
    place = name.rstrip("/") if "/" in name else name.replace(".", "/")
    candidates = (place, f"{place}.py", f"{place.rpartition('/')[0]}.py")
    return next((one for one in candidates if (ROOT / one).exists()), "")
