# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of the manual pages have in common: see page.py and header.py."""
