// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

// Included before all of Verilator's run-time sources: sends what the model prints to the harness.

#pragma once

extern "C" int hotline_printf(const char* format, ...);
#define VL_PRINTF hotline_printf
#define VL_USER_FINISH
#define VL_USER_STOP
#define VL_USER_FATAL
