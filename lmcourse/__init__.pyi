from lmcourse.accounting.costs import account as account
from lmcourse.accounting.recipes import find_recipe as find_recipe
from lmcourse.accounting.workload import Workload as Workload
from lmcourse.base.errors import CourseError as CourseError
from lmcourse.data.tokenizers import BPETokenizer as BPETokenizer
from lmcourse.data.tokenizers import ByteTokenizer as ByteTokenizer
from lmcourse.inference.generate import generate as generate
from lmcourse.inference.sampling import Sampling as Sampling
from lmcourse.models.config import TransformerConfig as TransformerConfig
from lmcourse.models.initialize import initialize as initialize
from lmcourse.models.interop.convert import from_hugging_face as from_hugging_face
from lmcourse.models.interop.convert import to_hugging_face as to_hugging_face
from lmcourse.models.transformer import Transformer as Transformer
from lmcourse.models.zoo import find_model as find_model
from lmcourse.models.zoo.styles import gpt_like as gpt_like
from lmcourse.models.zoo.styles import llama_like as llama_like
from lmcourse.pretrained import load_pretrained as load_pretrained
from lmcourse.training.trainer import Trainer as Trainer
from lmcourse.training.training_config import TrainingConfig as TrainingConfig

__version__: str
