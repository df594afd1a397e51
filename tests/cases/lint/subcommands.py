# case: argparse subcommands, chosen by set_defaults, run once
import argparse

import jax
import jax.numpy as jnp


def cmd_render(args):
    image = jax.jit(lambda k: jax.random.uniform(k, (args.size, args.size)))(jax.random.key(args.seed))
    jnp.save(args.out, image)


def cmd_stats(args):
    image = jnp.load(args.out)
    stats = jax.jit(lambda im: (im.mean(), im.std()))
    print(*stats(image))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    render = commands.add_parser("render")
    render.set_defaults(run=cmd_render)
    stats = commands.add_parser("stats")
    stats.set_defaults(run=cmd_stats)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
