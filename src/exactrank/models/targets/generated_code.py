"""Names of functions, and tables of trees, for targets that write code.

A function may have any name that neither the language nor its library has taken. C has words, which C++ adds to, and what ``<math.h>``
declares or defines: each function of doubles also for floats, long doubles and the types of fixed width. Functions of other headers are
refused too, since a program that is linked with the model would call it instead. In Python a function must not hide a builtin, which its
own code may use.

All trees of a model are in one table, which a loop in any language can evaluate:

    node = root of the tree
    while node >= 0:  node = left[node] if x[feature[node]] goes left else right[node]
    score += leaf[~node]                                                                                        (1)
"""

import builtins
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from exactrank.errors import SettingError
from exactrank.models.targets.plain import Tree

_WORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class compl concept "
    "const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double "
    "dynamic_cast else enum explicit export extern false float for friend goto if inline int long main mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return "
    "short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid "
    "typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq linux unix i386"
)
_MATH = (
    "acos acosh acospi asin asinh asinpi atan atan2 atan2pi atanh atanpi canonicalize cbrt ceil compoundn copysign cos cosh cospi "
    "drem erf erfc exp exp10 exp10m1 exp2 exp2m1 expm1 fabs fdim finite floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num "
    "fmaximum_num fmaxmag fmin fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmod frexp fromfp fromfpx gamma "
    "getpayload hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llogb llrint llround log log10 log10p1 log1p log2 log2p1 logb logp1 "
    "lrint lround modf nan nearbyint nextafter nextdown nexttoward nextup pow pow10 pown powr remainder remquo rint rootn round "
    "roundeven rsqrt scalb scalbln scalbn setpayload setpayloadsig significand sin sincos sinh sinpi sqrt tan tanh tanpi tgamma "
    "totalorder totalordermag trunc ufromfp ufromfpx y0 y1 yn"
)
_CLASSES = (
    "double_t float_t fpclassify iscanonical iseqsig isfinite isgreater isgreaterequal isless islessequal islessgreater isnormal "
    "issignaling issubnormal isunordered iszero math_errhandling matherr signbit signgam INFINITY MAXFLOAT MATH_ERREXCEPT "
    "MATH_ERRNO NAN DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS EOF NULL TRUE FALSE"
)
_LIBRARY = (
    "abort abs access accept asprintf atexit atof atoi atol atoll bind bsearch calloc chdir chmod clearerr clock close connect "
    "ctime difftime div dup environ errno exit fclose feof ferror fflush fgetc fgetpos fgets fopen fork fprintf fputc fputs fread "
    "free freopen fscanf fseek fsetpos ftell fwrite getc getchar getenv gets gmtime index isalnum isalpha isatty isblank iscntrl "
    "isdigit isgraph islower isprint ispunct isspace isupper isxdigit kill labs ldiv link listen llabs lldiv localeconv localtime "
    "longjmp lseek malloc mblen mbstowcs mbtowc memchr memcmp memcpy memmove memset mktime open optarg pause perror pipe printf "
    "putc putchar puts qsort raise rand read realloc recv remove rename rewind rindex scanf select send setbuf setjmp setlocale "
    "setvbuf signal sleep snprintf socket sprintf srand sscanf stat stderr stdin stdout strcat strchr strcmp strcoll strcpy "
    "strcspn strdup strerror strftime strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtod strtof strtok strtol "
    "strtold strtoll strtoul strtoull strxfrm system time tmpfile tmpnam tolower toupper ungetc unlink vfprintf vprintf vsnprintf "
    "vsprintf wait wcstombs wctomb write"
)


def _any(words: str) -> str:
    return f"(?:{words.replace(' ', '|')})"


_TYPE = r"f\d+x?"
_NARROW = "(?:add|div|fma|mul|sqrt|sub)"
_TAKEN_IN_C = re.compile(
    rf"{_any(' '.join((_WORDS, _CLASSES, _LIBRARY)))}|{_any(_MATH)}(?:f|l|{_TYPE})?(?:_r)?"
    rf"|[df]{_NARROW}l?|{_TYPE}{_NARROW}{_TYPE}|(?:M|FP)_\w+|HUGE_VAL\w*|SNAN\w*",
    re.ASCII,
)
_FORM = re.compile(r"[A-Za-z]\w*", re.ASCII)
#: Tests whether the language, or its library, uses a name already.
_TAKEN: Mapping[str, Callable[[str], bool]] = {
    "c": lambda name: _TAKEN_IN_C.fullmatch(name) is not None,
    "python": lambda name: keyword.iskeyword(name) or keyword.issoftkeyword(name) or hasattr(builtins, name),
}


def check_function_name(language: str, name: str) -> None:
    """Raise unless a function may have the ``name`` in ``language``, which is ``c`` or ``python``."""
    if not _FORM.fullmatch(name):
        raise SettingError(
            f"{language}: model_name={name!r} cannot be the name of a function; use letters, digits and _, starting with a letter"
        )
    if _TAKEN[language](name):
        raise SettingError(
            f"{language}: model_name={name!r} cannot be the name of a function, since the language or its library uses it;"
            f" give another one, e.g. model_name='score_{name}'"
        )


class Tables(NamedTuple):
    """The roots of the trees, (feature, threshold, missing goes left, left, right) of each node, and the leaves."""

    roots: list[int]
    nodes: list[tuple[int, float, int, int, int]]
    leaves: list[float]


def tables(trees: Sequence[Tree]) -> Tables:
    """Return the table of (1)."""
    roots: list[int] = []
    rows: list[tuple[int, float, int, int, int]] = []
    nodes = leaves = 0
    for tree in trees:
        sides = (np.where(side >= 0, side + nodes, side - leaves) for side in (tree.left, tree.right))
        columns = (tree.feature, tree.threshold, tree.missing_left.astype(int), *sides)
        rows += zip(*(column.tolist() for column in columns), strict=True)
        roots.append(nodes if len(tree.feature) else ~leaves)
        nodes, leaves = nodes + len(tree.feature), leaves + len(tree.leaf)
    return Tables(roots, rows, [value for tree in trees for value in tree.leaf.tolist()])
