"""Which arguments of JAX's functions may be traced values: what tells an array operand from a shape or an axis."""

from __future__ import annotations

_ELEMENTWISE = (
    "abs absolute add subtract multiply divide true_divide floor_divide mod remainder fmod power float_power negative "
    "positive sign square sqrt cbrt reciprocal exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 sin cos tan "
    "sinh cosh tanh arcsin arccos arctan arctan2 arcsinh arccosh arctanh sinc hypot minimum maximum fmin fmax where "
    "floor ceil trunc rint isnan isinf isfinite equal not_equal less less_equal greater greater_equal logical_and "
    "logical_or logical_not logical_xor real imag conj conjugate deg2rad rad2deg nan_to_num heaviside dot vdot inner "
    "outer matmul kron cross convolve correlate polyval interp clip searchsorted digitize isin"
).split()
_FIRST_ONLY = (
    "sum mean std var median prod max min amax amin argmax argmin cumsum cumprod any all ptp average sort argsort "
    "transpose ravel squeeze flip fliplr flipud diag diagonal trace triu tril asarray array stack concatenate hstack "
    "vstack nansum nanmean count_nonzero atleast_1d atleast_2d zeros_like ones_like swapaxes moveaxis expand_dims "
    "reshape repeat tile broadcast_to pad split array_split"
).split()
_LINALG = "norm inv det slogdet cholesky qr svd eigh eigvalsh pinv matrix_rank".split()
_LAX = (
    "add sub mul div rem pow neg exp log tanh sin cos max min abs sign sqrt rsqrt square dot select stop_gradient erf "
    "clamp logistic lgamma digamma expand_dims"
).split()
_ACTIVATIONS = (
    "relu relu6 sigmoid softplus soft_sign silu swish log_sigmoid leaky_relu hard_sigmoid hard_tanh elu celu selu gelu "
    "glu softmax log_softmax standardize logsumexp"
).split()
_RANDOM = "normal uniform bernoulli split fold_in categorical randint gumbel exponential".split()

EVERY = 99

# {dotted name: how many of the first positional arguments may be arrays}. What follows them is a shape, an axis, a dtype.
ARRAY_ARGUMENTS: dict[str, int] = {
    **{f"jax.numpy.{name}": EVERY for name in _ELEMENTWISE},
    **{f"jax.numpy.{name}": 1 for name in _FIRST_ONLY},
    **{f"jax.numpy.{name}": 2 for name in "quantile percentile tensordot allclose isclose solve take roll take_along_axis append".split()},
    **{f"jax.numpy.linalg.{name}": 1 for name in _LINALG},
    **{f"jax.numpy.fft.{name}": 1 for name in "fft ifft rfft irfft fft2 ifft2 fftn fftshift ifftshift".split()},
    "jax.numpy.linalg.solve": 2,
    "jax.numpy.linalg.lstsq": 2,
    **{f"jax.lax.{name}": EVERY for name in _LAX},
    **{f"jax.nn.{name}": 1 for name in _ACTIVATIONS},
    **{f"jax.random.{name}": 1 for name in _RANDOM},
    **{f"jax.random.{name}": 2 for name in "fold_in bernoulli categorical".split()},
    "jax.jvp": 3,
    "jax.vjp": EVERY,
    **{f"jax.numpy.{name}": 0 for name in "zeros ones empty eye identity arange tri".split()},
    **{f"jax.numpy.{name}": 2 for name in "linspace logspace geomspace full_like".split()},
    **{f"{library}.full": 2 for library in ("jax.numpy", "jax.lax")},
    "jax.numpy.einsum": EVERY,
    "jax.lax.iota": 0,
    "jax.nn.one_hot": 1,
    "jax.tree.map": EVERY,
    "jax.tree_util.tree_map": EVERY,
}  # fmt: skip
# {dotted name: positions that are a shape, a length or a formula}, and names of such arguments in all of JAX.
STATIC_POSITIONS: dict[str, tuple[int, ...]] = {
    "jax.numpy.full": (0,),
    "jax.lax.full": (0,),
    "jax.numpy.einsum": (0,),
    "jax.lax.scan": (3, 4, 5),
    "jax.lax.fori_loop": (0, 1),
    "jax.lax.dynamic_slice": (2,),
    "jax.lax.top_k": (1,),
    "jax.lax.dynamic_slice_in_dim": (2, 3),
    "jax.lax.broadcast": (1,),
    "jax.lax.broadcast_in_dim": (1, 2),
    "jax.lax.reshape": (1,),
    "jax.image.resize": (1,),
    "jax.ops.segment_sum": (2,),
}
STATIC_KEYWORDS = frozenset(
    "shape axis axes dtype length unroll reverse num size k num_classes num_segments slice_sizes total_repeat_length".split()
)
ARRAY_KEYWORDS = frozenset({"a_min", "a_max", "min", "max", "x", "y", "a", "b", "where", "q", "initial", "fill_value"})

# Calls of these give a Python value that is known while tracing, whatever is passed.
SHAPE_FUNCTIONS = frozenset(
    {f"jax.numpy.{name}" for name in "shape ndim size result_type issubdtype iinfo finfo dtype promote_types".split()}
    | {"jax.eval_shape", "jax.typeof", "jax.device_count", "jax.local_device_count"}
)

# Attributes of an array: those known while tracing, and methods with how many arguments may be arrays.
STATIC_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "size", "itemsize", "nbytes", "weak_type"})
ARRAY_ATTRIBUTES = frozenset({"T", "mT", "real", "imag", "at"})
ARRAY_METHODS: dict[str, int] = {
    **dict.fromkeys(
        "sum mean std var prod max min any all cumsum cumprod argmax argmin argsort ravel flatten squeeze transpose "
        "conj copy diagonal trace swapaxes reshape astype repeat take round block_until_ready ptp".split(),
        0,
    ),
    "clip": 2, "dot": 1, "set": 1, "add": 1, "subtract": 1, "multiply": 1, "divide": 1, "power": 1,
}  # fmt: skip
# Methods of an array whose arguments are shapes, axes and dtypes.
SHAPE_METHODS = frozenset(
    "sum mean std var prod max min any all cumsum argmax argmin reshape astype swapaxes transpose squeeze".split()
)
# `x.shape` is read off the array that is passed, not passed itself.
OF_ARRAYS = STATIC_ATTRIBUTES | ARRAY_ATTRIBUTES | ARRAY_METHODS.keys()
