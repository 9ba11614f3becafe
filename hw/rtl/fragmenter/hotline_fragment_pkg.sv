// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Types and functions that the blocks of the fragmenter share.
package hotline_fragment_pkg;

  /// What a record of the length stream says (`hotline_sample_lengths`).
  typedef enum logic [1:0] {
    LengthSample = 2'd0,  // the next sample has this many lookups
    LengthEnd    = 2'd1,  // no further sample
    LengthBad    = 2'd2,  // BAD_INDEX; where and what is beside the stream
    LengthFailed = 2'd3   // an offsets beat came with an error response
  } length_e;

  /// Home of a row in the cold tracker: a linear hash over GF(2) of all 32 bits.
  ///
  /// The low bits enter as they are, so that runs of neighbouring rows spread evenly; each further
  /// bit adds its own constant, so that strides of any power of two spread, too. The caller takes
  /// the low `bits` of the result.
  function automatic logic [31:0] cold_hash(input logic [31:0] row, input int unsigned bits);
    logic [31:0] hash;
    hash = row;
    for (int unsigned i = 0; i < 32; i++) begin
      if (i >= bits && row[i]) begin
        hash = hash ^ ((32'h9E37_79B9 * (2 * i + 1)) >> (i % 7));
      end
    end
    return hash;
  endfunction

endpackage
