// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Codes and constants that the kernels, the register map and the host share.
///
/// The host's copies are in `hotline/codes.py`; a test compares the two.
package hotline_pkg;

  /// Operation codes (argument OPERATION); bit n of IDENTITY.OPERATIONS says that code n is offered.
  typedef enum logic [7:0] {
    OpNone     = 8'd0,
    OpClear    = 8'd1,
    OpLearn    = 8'd2,
    OpFragment = 8'd3,
    OpDump     = 8'd4,
    OpLoad     = 8'd5,
    OpEvict    = 8'd6,
    OpGather   = 8'd8,
    OpScatter  = 8'd9
  } operation_e;

  /// Status codes of the completion record.
  typedef enum logic [7:0] {
    StatusOk           = 8'd0,
    StatusBadConfig    = 8'd1,
    StatusBadIndex     = 8'd2,
    StatusColdOverflow = 8'd3,
    StatusAxiError     = 8'd4,
    StatusAborted      = 8'd5
  } status_e;

  /// Reason codes: what exactly was wrong. 0 where the status needs no refinement.
  typedef enum logic [7:0] {
    ReasonNone            = 8'd0,
    // BAD_INDEX
    ReasonRowId           = 8'd1,   // row id >= total_rows
    ReasonOffset          = 8'd2,   // offsets entry out of contract
    ReasonSampleTooLong   = 8'd3,   // a sample has more than LOOKUPS_MAX lookups
    // BAD_CONFIG, checked in this order; the first one that holds is reported
    ReasonOperation       = 8'd16,  // operation unknown, or not of this kernel
    ReasonRecordPointer   = 8'd17,  // RECORD null or misaligned
    ReasonPointer         = 8'd18,  // a pointer in use is null or misaligned
    ReasonLookups         = 8'd19,  // too many in the job, or not samples * lookups_per_sample
    ReasonSamples         = 8'd20,  // too many samples
    ReasonBags            = 8'd21,  // too many bags
    ReasonLookupsPerSample = 8'd22, // more than LOOKUPS_MAX
    ReasonRows            = 8'd23,  // total_rows is 0 or above 2**32-2, or pinned_rows > total_rows
    ReasonColdRange       = 8'd24,  // cold_rows_max, cold_base out of range
    ReasonRecordBytes     = 8'd25,  // not a multiple of 64 in 64 ... 4096
    ReasonSegments        = 8'd26,  // segments or segment_shift out of range
    // AXI_ERROR
    ReasonRead            = 8'd32,
    ReasonWrite           = 8'd33
  } reason_e;

  /// FLAGS argument: LOAD takes a plain list of row ids (4 bytes each) instead of 8-byte entries.
  localparam int unsigned FlagPlainList = 0;
  /// FLAGS argument: LEARN keeps frequent rows instead of recent ones.
  localparam int unsigned FlagFrequency = 1;

  /// IDENTITY.MAGIC: "HOTL" read as a little-endian word.
  localparam logic [31:0] Magic = 32'h4C54_4F48;
  /// IDENTITY.VERSION: major << 16 | minor. The driver refuses another major.
  localparam logic [31:0] Version = 32'h0001_0000;

  localparam logic [31:0] JobLookupsMax  = 32'h1000_0000;
  localparam logic [31:0] JobSamplesMax  = 32'h1000_0000;
  localparam logic [31:0] BagsMax        = 32'h0000_FFFF;
  localparam logic [31:0] SegmentsMax    = 32'd64;
  localparam logic [31:0] RecordBytesMax = 32'd4096;

  /// Counter of an entry: width, its values after a hit and after SRRIP's or a plain list's
  /// insertion, and that of an entry to be replaced, with which the frequency policy inserts.
  localparam int unsigned CounterBits    = 2;
  localparam logic [1:0]  CounterHit     = 2'd0;
  localparam logic [1:0]  CounterInsert  = 2'd2;
  localparam logic [1:0]  CounterVictim  = 2'd3;

  /// Feistel permutation: four rounds on 16-bit halves (docs/architecture.md, "Permutation").
  localparam int unsigned FeistelRounds = 4;
  localparam logic [FeistelRounds-1:0][15:0] FeistelMultiplier =
      {16'h27D5, 16'hC2B3, 16'h85EB, 16'h9E37};  // element 0 is the last written here
  localparam logic [FeistelRounds-1:0][15:0] FeistelConstant =
      {16'h165F, 16'hAE35, 16'hCA6B, 16'h79B9};

  /// Round function: the middle 16 bits of the 32-bit product.
  function automatic logic [15:0] feistel_round(input logic [15:0] half,
                                                input logic [15:0] multiplier,
                                                input logic [15:0] constant);
    logic [31:0] product;
    product = {16'd0, half ^ constant} * {16'd0, multiplier};
    return product[23:8];
  endfunction

endpackage
