"""./stage models: lists the local models and those that can be pulled; ./stage models rm NAME deletes one."""
import argparse
import sys

import pulled_models
import repository
from download import Problem


def main():
    parser = argparse.ArgumentParser(
        prog="./stage models", description="Lists the models on this machine, and those that ./stage pull can download.",
        epilog="e.g. ./stage models rm smollm2-135m")
    parser.add_argument("action", nargs="?", choices=["rm"], help="rm: remove a model that was pulled")
    parser.add_argument("name", nargs="?", help="the model to remove")
    options = parser.parse_args()
    if options.action and not options.name:
        parser.error("rm: expected a name, found none")
    try:
        lines = [pulled_models.remove(options.name)] if options.action else list(pulled_models.listing())
    except (Problem, OSError) as problem:
        print(f"stage: models: {problem}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(repository.main(main))
