// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Types that the EAL and its banks share.
package hotline_eal_pkg;

  /// What a lookup does to the set that it looks into.
  typedef enum logic [2:0] {
    KindRead  = 3'd0,  // nothing: FRAGMENT
    KindLearn = 3'd1,  // hit: counter 0; miss: insert, replacing if the set is full
    KindCount = 3'd2,  // hit: counter - 1; miss: insert, a full set only if an entry is at 3,
                       // else one of the greatest counters + 1
    KindLoad  = 3'd3,  // miss: insert if a way is free
    KindEvict = 3'd4   // hit: invalidate
  } kind_e;

endpackage
