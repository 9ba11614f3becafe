// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Types that the EAL and its banks share.
package hotline_eal_pkg;

  /// What a lookup does to the set that it looks into.
  typedef enum logic [1:0] {
    KindRead  = 2'd0,  // nothing: FRAGMENT
    KindLearn = 2'd1,  // hit: counter 0; miss: insert, replacing if the set is full
    KindLoad  = 2'd2,  // miss: insert if a way is free
    KindEvict = 2'd3   // hit: invalidate
  } kind_e;

endpackage
