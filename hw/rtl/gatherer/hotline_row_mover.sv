// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Moves the beats of a job's records from the read engine to the write engine and closes the job.
///
/// The requester has asked for the rows in order, so their beats arrive in order, each row closed by
/// `last`. GATHER is one long write stream, SCATTER one stream per row:
///
///   data   : r0 r0* r1 r1* r2 r2*            (* last of a row; two beats a record)
///   GATHER : r0 r0  r1 r1  r2 r2  (empty*)   one stream, closed by an empty last beat
///   SCATTER: r0 r0* r1 r1* r2 r2*            three streams
///
/// Throughput  One beat per cycle; GATHER spends one cycle a job on closing its stream, which
///             takes no cycle of the bus.
/// Latency     Combinational from `dat_*` to `out_*`; both engines register them.
/// Stalls      By `out_ready_i`.
/// Errors      A beat with an error response: AXI_ERROR, reason READ. A SCATTER ends that row's stream
///             there and writes no later row; a GATHER goes on, its output is void. An earlier event of
///             the requester concerns a later row, so the error of a beat takes precedence.
/// Abort       With `abort_i` high the job ends as ABORTED unless something else stopped it before.
/// Reset       Drops the job.
module hotline_row_mover #(
  /// Width of the data bus.
  parameter int unsigned BusBits = 64
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         abort_i,

  input  logic                         beg_valid_i,
  output logic                         beg_ready_o,
  input  logic                         beg_scatter_i,
  input  logic                         beg_stream_i,

  input  logic                         end_valid_i,
  output logic                         end_ready_o,
  input  logic [31:0]                  end_rows_i,
  input  logic [7:0]                   end_status_i,
  input  logic [7:0]                   end_reason_i,
  input  logic [31:0]                  end_error_lookup_i,
  input  logic [63:0]                  end_error_value_i,

  /// Write commands of the requester, passed on while their job is the mover's. The requester is
  /// at most two jobs ahead, so two bits tell them apart.
  input  logic                         req_valid_i,
  output logic                         req_ready_o,
  input  logic [1:0]                   req_job_i,
  output logic                         wcmd_valid_o,
  input  logic                         wcmd_ready_i,

  /// Beats of the rows.
  input  logic                         dat_valid_i,
  output logic                         dat_ready_o,
  input  logic                         dat_error_i,
  input  logic [63:0]                  dat_addr_i,
  input  logic                         dat_last_i,
  input  logic                         dat_void_i,

  /// To the write engine; the data go there beside this module.
  output logic                         out_valid_o,
  input  logic                         out_ready_i,
  output logic [$clog2(BusBits/32):0]  out_words_o,
  output logic                         out_last_o,

  output logic                         mark_valid_o,
  input  logic                         mark_ready_i,

  /// The job as far as the mover knows it, valid with the mark.
  output logic [7:0]                   res_status_o,
  output logic [7:0]                   res_reason_o,
  output logic [31:0]                  res_lookups_o,
  output logic [31:0]                  res_stalls_o,
  output logic [31:0]                  res_error_lookup_o,
  output logic [63:0]                  res_error_value_o,

  output logic                         stat_busy_o,
  output logic                         stat_stall_read_o,
  output logic                         stat_stall_write_o,
  output logic                         idle_o
);

  import hotline_pkg::*;

  localparam int unsigned Lanes     = BusBits / 32;
  localparam int unsigned WordsBits = $clog2(Lanes) + 1;

  typedef enum logic [1:0] {
    StIdle,   // no job
    StMove,   // beats
    StClose,  // GATHER: the empty beat that closes the stream
    StMark    // waits until everything was sent
  } state_e;

  state_e      state_q, state_d;
  logic        scatter_q, stream_q;
  logic [1:0]  number_q;
  logic        aborted_q, failed_q, broken_q;
  logic [31:0] rows_q, stalls_q;
  logic [63:0] fail_addr_q;
  logic        all_rows, dat_fire, drop, forward;

  assign beg_ready_o = state_q == StIdle;
  assign all_rows    = end_valid_i && rows_q == end_rows_i;

  // A SCATTER that has met an error writes nothing more: the first beat at fault closes its row's
  // stream, each later row gets an empty stream (its command is already on its way).
  // `broken_q`: the stream of the present row was closed before the row's end.
  assign drop = scatter_q && (failed_q || dat_error_i || dat_void_i);

  always_comb begin
    forward     = 1'b0;
    out_words_o = WordsBits'(Lanes);
    out_last_o  = 1'b0;
    if (state_q == StClose) begin
      out_words_o = '0;
      out_last_o  = 1'b1;
    end else if (!scatter_q) begin
      forward = !dat_void_i;
    end else if (broken_q) begin
      forward = 1'b0;
    end else if (drop) begin
      forward     = 1'b1;
      out_words_o = '0;
      out_last_o  = 1'b1;
    end else begin
      forward    = 1'b1;
      out_last_o = dat_last_i;
    end
  end

  // Beats behind the last row belong to the next job, which the requester may have begun.
  assign out_valid_o = (state_q == StMove && !all_rows && dat_valid_i && forward)
                       || state_q == StClose;
  assign dat_ready_o = state_q == StMove && !all_rows && (!forward || out_ready_i);
  assign dat_fire    = dat_valid_i && dat_ready_o;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (beg_valid_i) state_d = StMove;
      StMove:  if (all_rows) state_d = stream_q ? StClose : StMark;
      StClose: if (out_ready_i) state_d = StMark;
      StMark:  if (mark_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q  <= StIdle;
      number_q <= '0;
    end else begin
      state_q  <= state_d;
      number_q <= number_q + 2'(beg_valid_i && beg_ready_o);
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      scatter_q <= beg_scatter_i;
      stream_q  <= beg_stream_i;
      rows_q    <= '0;
      stalls_q  <= '0;
      aborted_q <= abort_i;
      failed_q  <= 1'b0;
      broken_q  <= 1'b0;
    end else begin
      aborted_q <= aborted_q || abort_i;
      stalls_q  <= stalls_q + 32'(stat_stall_read_o || stat_stall_write_o);
      if (dat_fire) begin
        if (dat_last_i) rows_q <= rows_q + 32'd1;
        broken_q <= !dat_last_i && (broken_q || drop);
        if (dat_error_i && !dat_void_i && !failed_q) begin
          failed_q    <= 1'b1;
          fail_addr_q <= dat_addr_i;
        end else if (dat_void_i && scatter_q && !failed_q) begin
          aborted_q <= 1'b1;
        end
      end
    end
  end

  // ---------------------------------------------------------------------------- write commands
  logic ours;
  assign ours         = (state_q == StMove || state_q == StClose || state_q == StMark)
                        && req_job_i == number_q;
  assign wcmd_valid_o = req_valid_i && ours;
  assign req_ready_o  = wcmd_ready_i && ours;

  // ------------------------------------------------------------------------------------ result
  assign mark_valid_o = state_q == StMark;
  assign end_ready_o  = state_q == StMark && mark_ready_i;

  always_comb begin
    res_status_o       = StatusOk;
    res_reason_o       = ReasonNone;
    res_lookups_o      = end_rows_i;
    res_error_lookup_o = '0;
    res_error_value_o  = '0;
    if (failed_q) begin
      res_status_o      = StatusAxiError;
      res_reason_o      = ReasonRead;
      res_error_value_o = fail_addr_q;
      res_lookups_o     = '0;
    end else if (end_status_i != StatusOk) begin
      res_status_o       = end_status_i;
      res_reason_o       = end_reason_i;
      res_error_lookup_o = end_error_lookup_i;
      res_error_value_o  = end_error_value_i;
      if (!(scatter_q && end_status_i == StatusBadIndex)) res_lookups_o = '0;
    end else if (aborted_q || abort_i) begin
      res_status_o  = StatusAborted;
      res_lookups_o = '0;
    end
  end
  assign res_stalls_o = stalls_q;

  assign stat_busy_o        = state_q != StIdle;
  assign stat_stall_read_o  = state_q == StMove && !dat_valid_i && !all_rows;
  assign stat_stall_write_o = out_valid_o && !out_ready_i;
  assign idle_o             = state_q == StIdle;

`ifndef SYNTHESIS
  MarkStable_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    mark_valid_o && !mark_ready_i |=> mark_valid_o);
  NoRowTooMany_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    state_q == StMove && end_valid_i |-> rows_q <= end_rows_i);
`endif

endmodule
