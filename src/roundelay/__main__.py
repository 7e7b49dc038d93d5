"""`python -m roundelay` is `roundelay`."""

from roundelay.cli import main

if __name__ == "__main__":
    main()
