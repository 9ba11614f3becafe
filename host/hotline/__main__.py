# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""``python -m hotline``: the command line where the script is not on the path."""

from hotline.cli import main

if __name__ == "__main__":
    main()
