"""`python -m tidegate` is the program `tidegate`."""

from tidegate.cli.app import main

if __name__ == "__main__":
    main()
