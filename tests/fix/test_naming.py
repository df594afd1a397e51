"""The names that moved functions get."""

from __future__ import annotations

import pytest
from test_meaning import HEAD, fix


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("MoEExpertDown", "_moe_expert_down"),
        ("HTTPServer", "_http_server"),
        ("LoRA", "_lora"),
        ("MyMLP", "_my_mlp"),
        ("Conv2D", "_conv2d"),
        ("LayerNorm", "_layer_norm"),
        ("RoPEBlock2", "_rope_block2"),
        ("ViT", "_vit"),
    ],
)
def test_class_gives_its_name_to_what_its_call_jits(owner: str, name: str) -> None:
    source = f"class {owner}:\n    def __call__(self, x):\n        return jax.jit(lambda v: v * 2)(x)\n"
    assert f"def {name}(v):" in fix(HEAD + source).text
