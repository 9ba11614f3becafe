# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Figures of runs: records, comparisons, reports."""
