// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Holds the result of a job until all its writes are answered, while the next job is processed.
///
///   fin_* --> [result] --> mark to the write engine --> acked --> [status, counts] --> res_*
///
/// Which status wins, from the first on:
///
///   1. what stopped the job in the order of its events: BAD_INDEX, COLD_OVERFLOW, read error, abort;
///   2. ABORTED, if `abort_i` was high before the writes were answered: a job that would have been OK
///      or COLD_OVERFLOW, and a LOAD with BAD_INDEX (its rejected entries are lost). LEARN, EVICT and
///      CLEAR write nothing and keep their status;
///   3. AXI_ERROR, reason WRITE, instead of OK, COLD_OVERFLOW, and BAD_INDEX of a LOAD.
///
/// Throughput  One job at a time: `fin_ready_o` is low until the result was taken.
/// Latency     3 cycles from `fin_*` to `res_*` if nothing is in flight.
/// Stalls      By the write engine and `res_ready_i`.
/// Errors      See above.
/// Reset       Drops the job.
module hotline_job_closer import hotline_pkg::*; (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        abort_i,

  input  logic        fin_valid_i,
  output logic        fin_ready_o,
  input  logic [7:0]  fin_operation_i,
  input  status_e     fin_status_i,
  input  reason_e     fin_reason_i,
  input  logic [31:0] fin_epoch_i,
  input  logic [31:0] fin_samples_i,
  input  logic [31:0] fin_popular_i,
  input  logic [31:0] fin_cold_rows_i,
  input  logic [31:0] fin_pinned_lookups_i,
  input  logic [31:0] fin_eal_lookups_i,
  input  logic [31:0] fin_lookups_i,
  input  logic [31:0] fin_stalls_i,
  input  logic [31:0] fin_error_sample_i,
  input  logic [31:0] fin_error_lookup_i,
  input  logic [63:0] fin_error_value_i,

  output logic        mark_valid_o,
  input  logic        mark_ready_i,
  input  logic        acked_valid_i,
  output logic        acked_ready_o,
  input  logic        acked_error_i,
  input  logic [63:0] acked_addr_i,

  output logic        res_valid_o,
  input  logic        res_ready_i,
  output logic [7:0]  res_status_o,
  output logic [7:0]  res_reason_o,
  output logic [31:0] res_epoch_o,
  output logic [31:0] res_samples_o,
  output logic [31:0] res_popular_o,
  output logic [31:0] res_cold_rows_o,
  output logic [31:0] res_pinned_lookups_o,
  output logic [31:0] res_eal_lookups_o,
  output logic [31:0] res_cold_lookups_o,
  output logic [31:0] res_lookups_o,
  output logic [31:0] res_stalls_o,
  output logic [31:0] res_error_sample_o,
  output logic [31:0] res_error_lookup_o,
  output logic [63:0] res_error_value_o,

  output logic        idle_o
);

  typedef enum logic [1:0] {
    StIdle,  // no job
    StMark,  // tells the write engine where the job ends
    StAck,   // waits for its responses
    StDone   // the result waits to be taken
  } state_e;

  state_e  state_q;
  logic    aborted_q, aborted;
  logic    writes, learns, decided;
  logic [7:0] operation_q;
  status_e status_q, final_status;

  assign fin_ready_o   = state_q == StIdle;
  assign mark_valid_o  = state_q == StMark;
  assign acked_ready_o = state_q == StAck;
  assign res_valid_o   = state_q == StDone;
  assign idle_o        = state_q == StIdle;

  assign writes  = operation_q == OpFragment || operation_q == OpLoad || operation_q == OpDump;
  assign learns  = operation_q == OpLearn || operation_q == OpLoad || operation_q == OpEvict;
  assign aborted = aborted_q || abort_i;
  // A status that neither a lost output nor a write error changes.
  assign decided = status_q == StatusAborted || status_q == StatusAxiError || !writes
                   || (status_q == StatusBadIndex && operation_q != OpLoad);

  always_comb begin
    final_status = status_q;
    if (!decided && aborted) begin
      final_status = StatusAborted;
    end else if (!decided && acked_error_i) begin
      final_status = StatusAxiError;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle:  if (fin_valid_i) state_q <= StMark;
        StMark:  if (mark_ready_i) state_q <= StAck;
        StAck:   if (acked_valid_i) state_q <= StDone;
        default: if (res_ready_i) state_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    aborted_q <= aborted && state_q != StIdle;
    if (state_q == StIdle) begin
      aborted_q            <= abort_i;
      operation_q          <= fin_operation_i;
      status_q             <= fin_status_i;
      res_reason_o         <= fin_reason_i;
      res_epoch_o          <= fin_epoch_i;
      res_samples_o        <= fin_samples_i;
      res_popular_o        <= fin_popular_i;
      res_cold_rows_o      <= fin_cold_rows_i;
      res_pinned_lookups_o <= fin_pinned_lookups_i;
      res_eal_lookups_o    <= fin_eal_lookups_i;
      res_cold_lookups_o   <= fin_lookups_i - fin_pinned_lookups_i - fin_eal_lookups_i;
      res_lookups_o        <= fin_lookups_i;
      res_stalls_o         <= fin_stalls_i;
      res_error_sample_o   <= '0;
      res_error_lookup_o   <= '0;
      res_error_value_o    <= '0;
      if (fin_operation_i == OpDump) begin
        // `lookups` are entries.
        res_cold_lookups_o <= '0;
      end
      if (fin_status_i == StatusBadIndex) begin
        res_error_sample_o <= fin_error_sample_i;
        res_error_lookup_o <= fin_error_lookup_i;
      end
      if (fin_status_i == StatusBadIndex || fin_status_i == StatusAxiError) begin
        res_error_value_o  <= fin_error_value_i;
      end
    end
    if (state_q == StAck && acked_valid_i) begin
      res_status_o <= final_status;
      if (final_status != status_q) begin
        res_reason_o       <= final_status == StatusAxiError ? ReasonWrite : ReasonNone;
        res_error_sample_o <= '0;
        res_error_lookup_o <= '0;
        res_error_value_o  <= final_status == StatusAxiError ? acked_addr_i : '0;
      end
      // Void outputs have no counts. LEARN, LOAD and EVICT keep what they have applied.
      if (final_status == StatusAborted || final_status == StatusAxiError
          || (final_status == StatusBadIndex && !learns)) begin
        res_samples_o        <= '0;
        res_popular_o        <= '0;
        res_cold_rows_o      <= '0;
        res_pinned_lookups_o <= '0;
        res_eal_lookups_o    <= '0;
        res_cold_lookups_o   <= '0;
        if (!learns) begin
          res_lookups_o      <= '0;
        end
      end
    end
  end

endmodule
