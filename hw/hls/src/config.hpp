// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Parameters of a build. `hotline.hls` passes those of a named configuration (-D...); each must be
// given, so that no default can differ from hotline.config.
#pragma once

#if !defined(HOTLINE_BUS_BITS) || !defined(HOTLINE_EAL_SETS) || !defined(HOTLINE_EAL_WAYS) || \
    !defined(HOTLINE_COLD_ROWS) || !defined(HOTLINE_LOOKUPS_MAX)
#error "give HOTLINE_BUS_BITS, _EAL_SETS, _EAL_WAYS, _COLD_ROWS and _LOOKUPS_MAX"
#endif

// Bits of the tracker's generation: it is cleared when they wrap.
#ifndef HOTLINE_GENERATION_BITS
#define HOTLINE_GENERATION_BITS 8
#endif
