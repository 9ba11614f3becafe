# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Measurements behind ``hotline bench``."""
