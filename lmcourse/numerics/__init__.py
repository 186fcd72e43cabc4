"""Floating-point formats, bit by bit: the meaning of codes, rounding, and sums that stall."""

from lmcourse.numerics.codes import Fields as Fields
from lmcourse.numerics.codes import Kind as Kind
from lmcourse.numerics.codes import binade as binade
from lmcourse.numerics.codes import count_between as count_between
from lmcourse.numerics.codes import decode as decode
from lmcourse.numerics.codes import encode as encode
from lmcourse.numerics.codes import fields as fields
from lmcourse.numerics.codes import infinity_code as infinity_code
from lmcourse.numerics.codes import nan_code as nan_code
from lmcourse.numerics.codes import neighbours as neighbours
from lmcourse.numerics.codes import round_to as round_to
from lmcourse.numerics.codes import running_sum as running_sum
from lmcourse.numerics.codes import stall_point as stall_point
from lmcourse.numerics.codes import ulp as ulp
from lmcourse.numerics.codes import values_between as values_between
from lmcourse.numerics.float_formats import BF16 as BF16
from lmcourse.numerics.float_formats import E4M3 as E4M3
from lmcourse.numerics.float_formats import E5M2 as E5M2
from lmcourse.numerics.float_formats import FORMATS as FORMATS
from lmcourse.numerics.float_formats import FP16 as FP16
from lmcourse.numerics.float_formats import FP32 as FP32
from lmcourse.numerics.float_formats import FP64 as FP64
from lmcourse.numerics.float_formats import TF32 as TF32
from lmcourse.numerics.float_formats import FloatFormat as FloatFormat
from lmcourse.numerics.float_formats import find_format as find_format
