"""How to run the cases of tests/cases/lint: expressions to evaluate in each, and modules that stand for imported ones."""

from __future__ import annotations

import sys
import types

CALLS: dict[str, list[str]] = {
    "alias_names": [
        "mix(jnp.ones(3), jnp.arange(3.0))",
        "clip_norm(jnp.arange(3.0), 0.5)",
        "clip_norm(jnp.arange(3.0), 1)",
    ],
    "alias_partial_jit": ["cube_sum(jnp.arange(3.0))"],
    "amortised_and_paid_again": ["rollout(jnp.ones(2), 3)"],
    "functions_given_to_filter_jit": ["tree(jnp.ones(2))"],
    "hook_of_another_files_base": ["Learned().score(jnp.ones(2))"],
    "kernels_and_stages_trace": ["eager(jnp.ones(2))"],
    "amortised_and_called_in_a_loop": ["evaluate(jnp.ones(2), [jnp.ones(2), 2 * jnp.ones(2)])"],
    "bound_method_instances": ["corners(jnp.arange(1.0, 7.0).reshape(2, 3))"],
    "bound_method_on_self": ["INTEGRATOR.advance(jnp.ones(3))"],
    "crlf_lambda": ["halve(jnp.arange(3.0))"],
    "factory_called_and_dropped": ["soften(jnp.ones(3), 2)", "soften(jnp.ones(3))"],
    "factory_keywords_in_loop": ["train(jnp.ones(2), jnp.zeros(2), [jnp.ones(2), 2 * jnp.ones(2)], 0.1)"],
    "hot_though_one_sign_says_once": ["_loader().next_batch()"],
    "known_library_jits": ["mean_of(jnp.ones(3))"],
    "lambda_async_handler": [
        "embed(type('R', (), {'tokens': lambda s: __import__('asyncio').sleep(0, jnp.ones((2, 3)))})())"
    ],
    "lambda_called_at_once": [
        "rescale(jnp.arange(4.0), -1.0, 1.0)",
        "rescale(jnp.arange(4.0), 0, 3)",
        "summary(jnp.ones(3))",
    ],
    "lambda_in_branches": [
        "score(jnp.ones(3), jnp.arange(3.0))",
        "score(jnp.ones(3), jnp.arange(3.0), compiled=True)",
        "robust_inverse(jnp.eye(2) * 2)",
        "tail(jnp.arange(5.0), False)",
    ],
    "lambda_in_main_loop": ["main()"],
    "lambda_in_match": ["activate('relu', jnp.arange(-2.0, 2.0))", "activate('leaky', jnp.arange(-2.0, 2.0))"],
    "lambda_in_odd_places": [
        "Blob(jnp.arange(3.0)).norm",
        "square_root(2.0, np.float32(1.0))",
        "square_root(jnp.float32(9.0), np.float32(2.0))",
        "maybe_whiten(jnp.arange(3.0), True)",
    ],
    "lambda_lower_compile_call": ["trace_of_gram(jnp.arange(6.0).reshape(2, 3))"],
    "lambda_module_loop": ["CHECKSUM"],
    "lambda_named_first": [
        "damped_step(jnp.ones(2), jnp.arange(2.0), 0.1)",
        "damped_step(jnp.ones(2), jnp.arange(2.0), 1)",
    ],
    "lambda_per_item": ["spectra([jnp.arange(4.0), jnp.ones(4)])", "log_line(3, jnp.arange(4.0))"],
    "lambda_used_twice": ["PairDistance(2.0).both_ways(jnp.ones(3), jnp.arange(3.0))"],
    "nested_def_call_form": ["hessian_diag(_cube, jnp.arange(3.0))"],
    "nested_def_decorators_with_options": [
        "sample_paths(jax.random.PRNGKey(0), 4, 0.5)",
        "repeat_rows(jnp.ones((2, 2)), 3)",
    ],
    "nested_def_filter_jit": ["rollout_once(_policy, jnp.arange(3.0))"],
    "nested_def_in_loop": ["layer_report({'a': jnp.eye(2), 'b': jnp.ones((2, 2))}, jnp.arange(2.0))"],
    "nested_def_passed_to_grad": ["sensitivity(jnp.ones(2), jnp.arange(6.0).reshape(3, 2), jnp.ones(3))"],
    "nested_def_plain_decorator": [
        "predictive_interval(jnp.arange(9.0), 0.8)",
        "predictive_interval(jnp.arange(9.0), 0.5)",
        "Standardiser()(jnp.arange(6.0).reshape(3, 2))",
    ],
    "option_jit_names": ["trace_rays(jnp.ones(3))"],
    "other_jits_lambda": [
        "all_reduce(jnp.ones((1, 2)))",
        "predict(_policy, jnp.ones((1, 3)))",
        "evaluate(MODEL, jnp.ones((2, 3)))",
    ],
    "partial_forms": ["shrink(jnp.arange(-3.0, 3.0), 1.0)", "shrink_leaf(jnp.arange(-3.0, 3.0), 2.0)"],
    "partial_in_eval_loop": ["Evaluator({'a': (jnp.ones((1, 2, 3)), jnp.zeros((1, 2), int))}).run(2)"],
    "partial_local_names": ["cross_fade(jnp.ones(2), jnp.zeros(2), 0.25)"],
    "py312_generic_function": ["both((jnp.ones(2), jnp.zeros(3)))"],
    "rewrap_in_loop": ["state", "run(jnp.ones(3), 3)"],
    "rewrap_library_function": ["centre(jnp.arange(3.0))", "robust_centre(jnp.arange(9.0))"],
    "rewrap_own_function": [
        "score(jnp.ones(3) / 3)",
        "weighted_score(jnp.ones(3) / 3, 2.0)",
        "thrice(jnp.ones(3) / 3)",
    ],
    "tabs_nested_def": ["Gain(6.0).apply(jnp.ones(2))", "Gain(20).apply(jnp.ones(2))"],
    "transform_checkpoint": ["cheap_memory(jnp.eye(2))"],
    "transform_gradients": [
        "update(jnp.ones(2), jnp.arange(4.0).reshape(2, 2), jnp.ones(2), 0.1)",
        "one_step(jnp.ones(2), jnp.arange(4.0).reshape(2, 2), jnp.ones(2))",
    ],
    "transform_vmap_lambda": ["pairwise(jnp.arange(6.0).reshape(3, 2))"],
}

SETUP: dict[str, str] = {
    "bound_method_on_self": "INTEGRATOR = Integrator(0.1)",
    "hot_though_one_sign_says_once": (
        "def _loader():\n    loader = Loader()\n    loader.batch = jnp.arange(3.0)\n    return loader"
    ),
    "nested_def_call_form": "def _cube(x):\n    return (x**3).sum()",
    "nested_def_filter_jit": "def _policy(x):\n    return x * 0.5",
    "other_jits_lambda": "def _policy(x):\n    return x * 0.5\nMODEL = nnx.Linear(3, 2, rngs=nnx.Rngs(0))",
}
"""Code at the end of a case that its calls need."""

# A stable function that is jitted anew is not traced again; what its wrapper costs no trace shows. So it is
# with `checkpoint`, which is compiled again.
NO_RETRACE = {
    "functions_given_to_filter_jit",
    "rewrap_in_loop",
    "rewrap_library_function",
    "rewrap_own_function",
    "transform_checkpoint",
}


def install_imported_modules() -> None:
    """Modules that the cases import and that exist nowhere, with functions of JAX in them."""
    import jax
    import jax.numpy as jnp

    def module(name: str, **content: object) -> None:
        for end in range(1, name.count(".") + 2):
            part = ".".join(name.split(".")[:end])
            sys.modules.setdefault(part, types.ModuleType(part))
        vars(sys.modules[name]).update(content)

    module("ourrays.accel", compiled=jax.jit)
    module("haliax", named_jit=jax.jit)
    module("oursurvey.stats", trimmed_mean=lambda x: jnp.sort(x)[1:-1].mean())
    module("oursky.forces", build_potential=lambda constants: lambda bodies: (bodies * constants).sum())
