# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Simulation machinery: building and running cocotb benches, bus models."""
