// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Finds the first rule that a job's arguments break (BAD_CONFIG, docs/architecture.md section 6).
///
/// `start_i` is a pulse; the arguments must be stable from its cycle until `done_o`, a pulse with
/// which `reason_o` (ReasonNone: the job may run) and `record_ok_o` (the record's pointer can be
/// used, whatever the reason) are valid.
///
///   start_i  |^|   operands, products, sums, compares ...   |^|  done_o, reason_o, record_ok_o
///            0                                               9
///
/// All rules are evaluated side by side in registered steps; a priority encoder picks the first.
/// The 32 x 32-bit product samples * (lookups_per_sample or bags) takes four 16 x 16-bit steps on
/// one multiplier, so that no step is longer than one multiplication, addition or comparison.
///
/// Throughput  One job in 9 cycles.
/// Latency     9 cycles from `start_i` to `done_o`, whatever the arguments.
/// Stalls      None.
/// Errors      They are its results.
/// Reset       Drops a check in progress.
module hotline_job_check
  import hotline_pkg::*;
#(
  /// Bit n: operation code n is offered.
  parameter logic [31:0] Operations = 32'h0000_037E,
  /// Entries of the EAL: sets * ways.
  parameter logic [31:0] EalEntries = 32'd256,
  /// Most lookups of a sample.
  parameter logic [31:0] LookupsMax = 32'd64,
  /// Depth of the cold tracker.
  parameter logic [31:0] ColdRowsMax = 32'd128
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        start_i,
  input  logic [31:0] operation_i,
  input  logic [63:0] record_i,
  input  logic [63:0] ids_i,
  input  logic [63:0] offsets_i,
  input  logic [63:0] indices_i,
  input  logic [63:0] popular_i,
  input  logic [63:0] nonpopular_i,
  input  logic [63:0] bitmap_i,
  input  logic [63:0] cold_i,
  input  logic [63:0] records_i,
  input  logic [63:0] store_i,
  input  logic [31:0] lookups_i,
  input  logic [31:0] samples_i,
  input  logic [31:0] bags_i,
  input  logic [31:0] lookups_per_sample_i,
  input  logic [31:0] total_rows_i,
  input  logic [31:0] pinned_rows_i,
  input  logic [31:0] cold_base_i,
  input  logic [31:0] cold_rows_max_i,
  input  logic [31:0] record_bytes_i,
  input  logic [31:0] segments_i,
  input  logic [31:0] segment_shift_i,

  output logic        done_o,
  output logic [7:0]  reason_o,
  output logic        record_ok_o
);

  localparam int unsigned Steps = 9;
  localparam logic [31:0] IndexEnd = 32'h8000_0000;
  localparam logic [31:0] DumpSlotEnd = 32'h4000_0000;
  localparam logic [31:0] ShiftMax = 32'd31;

  /// Whether a pointer is null or not aligned to 64 bytes.
  function automatic logic bad_pointer(input logic [63:0] pointer);
    return pointer == '0 || pointer[5:0] != '0;
  endfunction

  // ------------------------------------------------------------------------------------- sequence

  logic [Steps-1:0] step_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= '0;
    end else begin
      step_q <= {step_q[Steps-2:0], start_i};
    end
  end

  // -------------------------------------------------------------------- step 0: what is the job?

  logic fragment_q;
  logic fixed_q;
  logic list_q;    // LEARN, LOAD, EVICT
  logic load_q;
  logic dump_q;
  logic move_q;    // GATHER, SCATTER
  logic lookups_some_q;
  logic samples_some_q;
  logic bags_some_q;

  always_ff @(posedge clk_i) begin
    fragment_q     <= operation_i == 32'(OpFragment);
    fixed_q        <= operation_i == 32'(OpFragment) && bags_i == '0;
    list_q         <= operation_i inside {32'(OpLearn), 32'(OpLoad), 32'(OpEvict)};
    load_q         <= operation_i == 32'(OpLoad);
    dump_q         <= operation_i == 32'(OpDump);
    move_q         <= operation_i inside {32'(OpGather), 32'(OpScatter)};
    lookups_some_q <= lookups_i != '0;
    samples_some_q <= samples_i != '0;
    bags_some_q    <= bags_i != '0;
  end

  // ------------------------------------------------------------- the product, steps 1 to 6
  //   step   multiplier                accumulator
  //   1      low * low
  //   2      high * low                + low * low
  //   3      low * high                + high * low << 16
  //   4      high * high               + low * high << 16
  //   5                                + high * high << 32
  //   6      compare

  logic [31:0] factor;
  logic [15:0] left;
  logic [15:0] right;
  logic [31:0] partial_q;
  logic [63:0] product_q;
  logic        product_lookups_q;
  logic        product_large_q;

  assign factor = fixed_q ? lookups_per_sample_i : bags_i;
  assign left   = step_q[1] || step_q[3] ? samples_i[31:16] : samples_i[15:0];
  assign right  = step_q[2] || step_q[3] ? factor[31:16] : factor[15:0];

  always_ff @(posedge clk_i) begin
    partial_q <= {16'd0, left} * {16'd0, right};
    if (step_q[1]) begin
      product_q <= {32'd0, partial_q};
    end else if (step_q[2] || step_q[3]) begin
      product_q <= product_q + {16'd0, partial_q, 16'd0};
    end else if (step_q[4]) begin
      product_q <= product_q + {partial_q, 32'd0};
    end
    product_lookups_q <= product_q == {32'd0, lookups_i};
    // One entry more than the product must be countable in 32 bits.
    product_large_q   <= product_q >= 64'hFFFF_FFFF;
  end

  // ------------------------------------------------- all rules; they settle within a few cycles

  logic        ids_bad_q;
  logic        offsets_bad_q;
  logic        indices_bad_q;
  logic        samples_bad_q;     // pointers that depend on samples
  logic        cold_bad_q;
  logic        moved_bad_q;       // RECORDS, STORE
  logic        record_bad_q;
  logic        lookups_large_q;
  logic        samples_large_q;
  logic        bags_large_q;
  logic        long_q;
  logic        total_bad_q;
  logic        pinned_bad_q;
  logic [32:0] hot_rows_q;
  logic [32:0] cold_end_q;
  logic        dump_bad_q;
  logic        cold_rows_bad_q;
  logic        cold_end_bad_q;
  logic        cold_base_bad_q;
  logic        bytes_bad_q;
  logic [31:0] last_row_q;
  logic [31:0] last_segment_q;
  logic        segments_bad_q;
  logic        segments_few_q;

  always_ff @(posedge clk_i) begin
    record_bad_q    <= bad_pointer(record_i);
    ids_bad_q       <= bad_pointer(ids_i);
    offsets_bad_q   <= bad_pointer(offsets_i);
    indices_bad_q   <= bad_pointer(indices_i);
    samples_bad_q   <= bad_pointer(popular_i) || bad_pointer(nonpopular_i) || bad_pointer(bitmap_i);
    cold_bad_q      <= bad_pointer(cold_i);
    moved_bad_q     <= bad_pointer(records_i) || bad_pointer(store_i);
    lookups_large_q <= lookups_i > JobLookupsMax;
    samples_large_q <= samples_i > JobSamplesMax;
    bags_large_q    <= bags_i > BagsMax;
    long_q          <= lookups_per_sample_i > LookupsMax;
    total_bad_q     <= total_rows_i == '0 || total_rows_i == '1;
    pinned_bad_q    <= pinned_rows_i > total_rows_i;
    hot_rows_q      <= {1'b0, pinned_rows_i} + {1'b0, EalEntries};
    cold_end_q      <= {1'b0, cold_base_i} + {1'b0, cold_rows_max_i};
    dump_bad_q      <= hot_rows_q > {1'b0, DumpSlotEnd};
    cold_rows_bad_q <= cold_rows_max_i == '0 || cold_rows_max_i > ColdRowsMax;
    cold_end_bad_q  <= cold_end_q >= {1'b0, IndexEnd};
    cold_base_bad_q <= {1'b0, cold_base_i} < hot_rows_q;
    bytes_bad_q     <= record_bytes_i == '0 || record_bytes_i[5:0] != '0 ||
                       record_bytes_i > RecordBytesMax;
    last_row_q      <= total_rows_i - 32'd1;
    last_segment_q  <= last_row_q >> segment_shift_i[4:0];
    segments_bad_q  <= segments_i == '0 || segments_i > SegmentsMax || segment_shift_i > ShiftMax;
    segments_few_q  <= segments_i > 32'd1 && last_segment_q >= segments_i;
  end

  // ----------------------------------------------------------- step 7: rules that concern the job

  logic broken_operation_q;
  logic broken_pointer_q;
  logic broken_lookups_q;
  logic broken_samples_q;
  logic broken_bags_q;
  logic broken_long_q;
  logic broken_rows_q;
  logic broken_cold_q;
  logic broken_bytes_q;
  logic broken_segments_q;

  always_ff @(posedge clk_i) begin
    broken_operation_q <= operation_i[31:5] != '0 || !Operations[operation_i[4:0]];
    broken_pointer_q   <=
        ((list_q || fragment_q || move_q) && lookups_some_q && ids_bad_q) ||
        ((load_q || fragment_q) && lookups_some_q && indices_bad_q) ||
        (dump_q && indices_bad_q) ||
        (fragment_q && lookups_some_q && cold_bad_q) ||
        (fragment_q && samples_some_q && samples_bad_q) ||
        (fragment_q && bags_some_q && offsets_bad_q) ||
        (move_q && lookups_some_q && moved_bad_q);
    broken_lookups_q   <= ((list_q || fragment_q || move_q) && lookups_large_q) ||
                          (fixed_q && !product_lookups_q);
    broken_samples_q   <= fragment_q && samples_large_q;
    broken_bags_q      <= fragment_q && (bags_large_q || (!fixed_q && product_large_q));
    broken_long_q      <= fixed_q && long_q;
    broken_rows_q      <= ((list_q || fragment_q || move_q) && total_bad_q) ||
                          ((list_q || fragment_q) && pinned_bad_q) ||
                          (dump_q && dump_bad_q);
    broken_cold_q      <= fragment_q && (cold_rows_bad_q || cold_end_bad_q || cold_base_bad_q);
    broken_bytes_q     <= move_q && bytes_bad_q;
    broken_segments_q  <= move_q && (segments_bad_q || segments_few_q);
  end

  // ------------------------------------------------------------------------ step 8: the first rule

  logic [7:0] reason_q;

  always_ff @(posedge clk_i) begin
    priority case (1'b1)
      broken_operation_q: reason_q <= ReasonOperation;
      record_bad_q:       reason_q <= ReasonRecordPointer;
      broken_pointer_q:   reason_q <= ReasonPointer;
      broken_lookups_q:   reason_q <= ReasonLookups;
      broken_samples_q:   reason_q <= ReasonSamples;
      broken_bags_q:      reason_q <= ReasonBags;
      broken_long_q:      reason_q <= ReasonLookupsPerSample;
      broken_rows_q:      reason_q <= ReasonRows;
      broken_cold_q:      reason_q <= ReasonColdRange;
      broken_bytes_q:     reason_q <= ReasonRecordBytes;
      broken_segments_q:  reason_q <= ReasonSegments;
      default:            reason_q <= ReasonNone;
    endcase
  end

  assign done_o      = step_q[Steps-1];
  assign reason_o    = reason_q;
  assign record_ok_o = !record_bad_q;

endmodule
