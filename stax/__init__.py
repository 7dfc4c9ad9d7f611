"""stax: array programs as functions of indices; schedules are proved before they run.

What defines a program is loaded at once, what compiles it when it is first named.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from stax import errors as errors
from stax.dtypes import bfloat16 as bfloat16
from stax.dtypes import bool_ as bool_
from stax.dtypes import float16 as float16
from stax.dtypes import float32 as float32
from stax.dtypes import float64 as float64
from stax.dtypes import int8 as int8
from stax.dtypes import int16 as int16
from stax.dtypes import int32 as int32
from stax.dtypes import int64 as int64
from stax.dtypes import uint8 as uint8
from stax.dtypes import uint16 as uint16
from stax.dtypes import uint32 as uint32
from stax.dtypes import uint64 as uint64
from stax.lang import monoids as monoids
from stax.lang.func import Func as Func
from stax.lang.inputs import Const as Const
from stax.lang.inputs import Input as Input
from stax.lang.inputs import Param as Param
from stax.lang.math import abs as abs
from stax.lang.math import absd as absd
from stax.lang.math import acos as acos
from stax.lang.math import asin as asin
from stax.lang.math import atan as atan
from stax.lang.math import atan2 as atan2
from stax.lang.math import cast as cast
from stax.lang.math import ceil as ceil
from stax.lang.math import choose as choose
from stax.lang.math import clip as clip
from stax.lang.math import clz as clz
from stax.lang.math import copysign as copysign
from stax.lang.math import cos as cos
from stax.lang.math import cosh as cosh
from stax.lang.math import erf as erf
from stax.lang.math import exp as exp
from stax.lang.math import exp2 as exp2
from stax.lang.math import expm1 as expm1
from stax.lang.math import floor as floor
from stax.lang.math import hypot as hypot
from stax.lang.math import inf as inf
from stax.lang.math import isfinite as isfinite
from stax.lang.math import isinf as isinf
from stax.lang.math import isnan as isnan
from stax.lang.math import log as log
from stax.lang.math import log1p as log1p
from stax.lang.math import log2 as log2
from stax.lang.math import log10 as log10
from stax.lang.math import maximum as maximum
from stax.lang.math import minimum as minimum
from stax.lang.math import mul_high as mul_high
from stax.lang.math import nan as nan
from stax.lang.math import pi as pi
from stax.lang.math import popcount as popcount
from stax.lang.math import pow as pow
from stax.lang.math import power as power
from stax.lang.math import rint as rint
from stax.lang.math import rounding_average as rounding_average
from stax.lang.math import rsqrt as rsqrt
from stax.lang.math import saturating_add as saturating_add
from stax.lang.math import saturating_cast as saturating_cast
from stax.lang.math import saturating_sub as saturating_sub
from stax.lang.math import select as select
from stax.lang.math import sigmoid as sigmoid
from stax.lang.math import sign as sign
from stax.lang.math import sin as sin
from stax.lang.math import sinh as sinh
from stax.lang.math import sqrt as sqrt
from stax.lang.math import tan as tan
from stax.lang.math import tanh as tanh
from stax.lang.math import trunc as trunc
from stax.lang.math import where as where
from stax.lang.math import widening_mul as widening_mul
from stax.lang.monoid import Monoid as Monoid
from stax.lang.pad import pad as pad
from stax.lang.reduce import all as all
from stax.lang.reduce import any as any
from stax.lang.reduce import argmax as argmax
from stax.lang.reduce import argmin as argmin
from stax.lang.reduce import max as max
from stax.lang.reduce import mean as mean
from stax.lang.reduce import min as min
from stax.lang.reduce import prod as prod
from stax.lang.reduce import sum as sum
from stax.lang.reduce import var as var
from stax.lang.value import Value as Value
from stax.lang.var import RDom as RDom
from stax.lang.var import Var as Var
from stax.lang.var import vars as vars
from stax.options import Options as Options
from stax.target import Target as Target

if _TYPE_CHECKING:
    from stax.aot.export import export as export
    from stax.compiler import auto_schedule as auto_schedule
    from stax.compiler import check as check
    from stax.compiler import compile as compile
    from stax.compiler import compile_all as compile_all
    from stax.compiler import explain as explain
    from stax.compiler import realize as realize
    from stax.measure.bench import bench as bench
    from stax.measure.compare import compare as compare
    from stax.measure.profile import profile as profile
    from stax.measure.roofline import roofline as roofline
    from stax.measure.trace import trace as trace
    from stax.measure.traffic import traffic as traffic
    from stax.runtime.kernel import Kernel as Kernel
    from stax.schedule.schedule import Schedule as Schedule

_LATER = {
    "Kernel": "stax.runtime.kernel",
    "Schedule": "stax.schedule.schedule",
    "auto_schedule": "stax.compiler",
    "bench": "stax.measure.bench",
    "check": "stax.compiler",
    "compare": "stax.measure.compare",
    "compile": "stax.compiler",
    "compile_all": "stax.compiler",
    "explain": "stax.compiler",
    "export": "stax.aot.export",
    "profile": "stax.measure.profile",
    "realize": "stax.compiler",
    "roofline": "stax.measure.roofline",
    "trace": "stax.measure.trace",
    "traffic": "stax.measure.traffic",
}


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module 'stax' has no attribute {name!r}")
    return getattr(_import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
