"""Classifies pictures with a converted model.

python classify.py digits.ekpkg three.png seven.png
"""

import sys

import edgekit as ek


def main() -> None:
    """Prints the best class of each picture."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    package, *pictures = sys.argv[1:]
    with ek.load(package) as model:
        for picture in pictures:
            result = model(picture)
            print(f"{picture}: {result.labels[0]} ({result.confidence[0]:.1%})")


if __name__ == "__main__":
    main()
