"""Tokenizers for bytes, characters and byte pairs (`tokenizer`, `bpe`), and their files (`tokenizer_json`)."""

from __future__ import annotations

from lmcourse.data.tokenizers.bpe import BPETokenizer as BPETokenizer
from lmcourse.data.tokenizers.tokenizer import ByteTokenizer as ByteTokenizer
from lmcourse.data.tokenizers.tokenizer import CharacterTokenizer as CharacterTokenizer
from lmcourse.data.tokenizers.tokenizer import Tokenizer as Tokenizer
from lmcourse.data.tokenizers.tokenizer_json import LibraryTokenizer as LibraryTokenizer
from lmcourse.data.tokenizers.tokenizer_json import load_tokenizer as load_tokenizer
from lmcourse.data.tokenizers.tokenizer_json import open_any_tokenizer as open_any_tokenizer
from lmcourse.data.tokenizers.tokenizer_json import save_tokenizer as save_tokenizer
