# case: not certain in this file, so only on request
# options: --extend-select=JIT291
import jax


class Decoder:
    def __init__(self):
        self.scale = None
        self.decode = jax.jit(self._decode)  # expect: JIT291

    def load(self, scale):
        self.scale = scale

    def _decode(self, x):
        return x * self.scale


GAIN = 1.0


@jax.jit  # expect: JIT291
def amplify(x):
    return x * GAIN


def setup(gain):
    global GAIN
    GAIN = gain
