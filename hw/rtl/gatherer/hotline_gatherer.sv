// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Gatherer core: copies records between the cold store and a contiguous buffer.
///
///   job --> front --> requester --commands--> read engine ==beats==> mover ==> write engine
///             |ids command   ^row ids            |                     |mark        |acked
///             +-------------------------------->-+                     +--> completion --> res
///
/// Three jobs overlap: the front starts the ids of job i+2 while the requester asks for the rows of
/// i+1, the mover moves those of i, and the completion stage waits for the responses of i-1 (the
/// shell admits two at a time).
///
/// Throughput  One beat per cycle in and out; back to back at least 0.95 of the limit (records and row
///             ids over the bus) with a latency of 200 cycles, if `ReadOutstanding` and `WriteOutstanding`
///             bursts cover the latency (one-beat records need one burst per cycle of latency).
/// Latency     Two memory latencies (row ids, records), one more for the write response, and some
///             twenty cycles.
/// Stalls      By the memory alone.
/// Errors      docs/architecture.md, sections 5 and 6. A SCATTER writes nothing for, or behind, the
///             first row that it reports.
/// Abort       `abort_i`: no new address; what was accepted is completed, writes with strobes 0.
/// Reset       Drops all jobs. The memory system must be reset too, or have answered everything.
module hotline_gatherer #(
  /// Width of the data bus: 64, 128, 256 or 512.
  parameter int unsigned BusBits          = 64,
  /// Longest burst in beats.
  parameter int unsigned BurstBeats       = 16,
  /// Read and write bursts in flight.
  parameter int unsigned ReadOutstanding  = 16,
  parameter int unsigned WriteOutstanding = 16
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 job_valid_i,
  output logic                 job_ready_o,
  input  logic [7:0]           job_operation_i,
  input  logic [63:0]          job_ids_i,
  input  logic [63:0]          job_records_i,
  input  logic [63:0]          job_store_i,
  input  logic [31:0]          job_lookups_i,
  input  logic [31:0]          job_total_rows_i,
  input  logic [31:0]          job_record_bytes_i,
  input  logic [31:0]          job_segments_i,
  input  logic [31:0]          job_segment_shift_i,
  input  logic                 abort_i,

  output logic                 res_valid_o,
  input  logic                 res_ready_i,
  output logic [7:0]           res_status_o,
  output logic [7:0]           res_reason_o,
  output logic [31:0]          res_epoch_o,
  output logic [31:0]          res_samples_o,
  output logic [31:0]          res_popular_o,
  output logic [31:0]          res_cold_rows_o,
  output logic [31:0]          res_pinned_lookups_o,
  output logic [31:0]          res_eal_lookups_o,
  output logic [31:0]          res_cold_lookups_o,
  output logic [31:0]          res_lookups_o,
  output logic [31:0]          res_stalls_o,
  output logic [31:0]          res_error_sample_o,
  output logic [31:0]          res_error_lookup_o,
  output logic [63:0]          res_error_value_o,
  output logic                 idle_o,

  output logic                 m_ar_valid_o,
  input  logic                 m_ar_ready_i,
  output logic [63:0]          m_ar_addr_o,
  output logic [7:0]           m_ar_len_o,
  input  logic                 m_r_valid_i,
  output logic                 m_r_ready_o,
  input  logic [BusBits-1:0]   m_r_data_i,
  input  logic [1:0]           m_r_resp_i,
  input  logic                 m_r_last_i,
  input  logic [63:0]          m_r_addr_i,
  output logic                 m_aw_valid_o,
  input  logic                 m_aw_ready_i,
  output logic [63:0]          m_aw_addr_o,
  output logic [7:0]           m_aw_len_o,
  output logic                 m_w_valid_o,
  input  logic                 m_w_ready_i,
  output logic [BusBits-1:0]   m_w_data_o,
  output logic [BusBits/8-1:0] m_w_strb_o,
  output logic                 m_w_last_o,
  input  logic                 m_b_valid_i,
  output logic                 m_b_ready_o,
  input  logic [1:0]           m_b_resp_i,
  input  logic [63:0]          m_b_addr_i,

  output logic                 stat_busy_o,
  output logic                 stat_stall_read_o,
  output logic                 stat_stall_write_o,
  output logic                 stat_stall_bank_o,
  output logic                 stat_stall_tracker_o
);

  import hotline_pkg::*;

  localparam int unsigned Lanes     = BusBits / 32;
  localparam int unsigned WordsBits = $clog2(Lanes) + 1;
  // Rows between a command and its beats: more than the reads in flight, so that this queue is
  // never what limits them.
  localparam int unsigned RowsInFlight = 2 * ReadOutstanding;
  localparam int unsigned ReadFifoBeats = ReadOutstanding >= 64 ? 512 : 64;

  // Channels of the read engine.
  localparam int unsigned ChIds   = 0;
  localparam int unsigned ChRows  = 1;
  localparam int unsigned ChTable = 2;
  localparam int unsigned Readers = 3;

  // ------------------------------------------------------------------------------------- front
  typedef enum logic [1:0] {
    FrontIdle,  // takes a job
    FrontIds,   // starts its ids
    FrontPass   // hands it to the requester
  } front_e;
  front_e      front_q;
  logic        f_scatter_q, req_ready;
  logic [31:0] f_lookups_q, f_rows_q;
  logic [12:0] f_record_bytes_q;
  logic [6:0]  f_segments_q;
  logic [4:0]  f_shift_q;
  logic [63:0] f_ids_q, f_store_q, f_records_q;

  logic [Readers-1:0]              cmd_valid, cmd_ready, cancel;
  logic [Readers-1:0][63:0]        cmd_addr;
  logic [Readers-1:0][31:0]        cmd_beats;
  logic [Readers-1:0]              rd_valid, rd_ready, rd_error, rd_last, rd_void;
  logic [Readers-1:0][BusBits-1:0] rd_data;
  logic [Readers-1:0][63:0]        rd_addr;
  logic                            rd_idle, wr_idle;

  assign job_ready_o = front_q == FrontIdle;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      front_q <= FrontIdle;
    end else begin
      unique case (front_q)
        FrontIdle: if (job_valid_i) front_q <= job_lookups_i == 0 ? FrontPass : FrontIds;
        FrontIds:  if (cmd_ready[ChIds]) front_q <= FrontPass;
        FrontPass: if (req_ready) front_q <= FrontIdle;
        default:   front_q <= FrontIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (front_q == FrontIdle) begin
      f_scatter_q      <= job_operation_i == OpScatter;
      f_ids_q          <= job_ids_i;
      f_records_q      <= job_records_i;
      f_store_q        <= job_store_i;
      f_lookups_q      <= job_lookups_i;
      f_rows_q         <= job_total_rows_i;
      f_record_bytes_q <= job_record_bytes_i[12:0];
      f_segments_q     <= job_segments_i[6:0];
      f_shift_q        <= job_segment_shift_i[4:0];
    end
  end

  // The shell has checked these arguments against their limits, so the high bits are 0.
  logic unused_high_bits;
  assign unused_high_bits = ^{job_record_bytes_i[31:13], job_segments_i[31:7],
                              job_segment_shift_i[31:5]};

  assign cmd_valid[ChIds] = front_q == FrontIds;
  assign cmd_addr[ChIds]  = f_ids_q;
  assign cmd_beats[ChIds] = (f_lookups_q + 32'(Lanes - 1)) >> $clog2(Lanes);

  // --------------------------------------------------------------------------------- requester
  logic        wcmd_valid, wcmd_ready;
  logic [1:0]  wcmd_job;
  logic [63:0] wcmd_addr;
  logic        beg_valid, beg_ready, beg_scatter, beg_stream;
  logic        end_valid, end_ready, requester_idle;
  logic [31:0] end_rows, end_error_lookup;
  logic [7:0]  end_status, end_reason;
  logic [63:0] end_error_value;

  hotline_row_requester #(
    .BusBits(BusBits)
  ) u_requester (
    .clk_i,
    .rst_ni,
    .abort_i,
    .job_valid_i         (front_q == FrontPass),
    .job_ready_o         (req_ready),
    .job_scatter_i       (f_scatter_q),
    .job_lookups_i       (f_lookups_q),
    .job_rows_i          (f_rows_q),
    .job_record_bytes_i  (f_record_bytes_q),
    .job_segments_i      (f_segments_q),
    .job_segment_shift_i (f_shift_q),
    .job_store_i         (f_store_q),
    .job_records_i       (f_records_q),
    .ids_valid_i         (rd_valid[ChIds]),
    .ids_ready_o         (rd_ready[ChIds]),
    .ids_data_i          (rd_data[ChIds]),
    .ids_error_i         (rd_error[ChIds]),
    .ids_addr_i          (rd_addr[ChIds]),
    .ids_last_i          (rd_last[ChIds]),
    .ids_void_i          (rd_void[ChIds]),
    .ids_cancel_o        (cancel[ChIds]),
    .tcmd_valid_o        (cmd_valid[ChTable]),
    .tcmd_ready_i        (cmd_ready[ChTable]),
    .tcmd_addr_o         (cmd_addr[ChTable]),
    .tcmd_beats_o        (cmd_beats[ChTable]),
    .tbl_valid_i         (rd_valid[ChTable]),
    .tbl_ready_o         (rd_ready[ChTable]),
    .tbl_data_i          (rd_data[ChTable]),
    .tbl_error_i         (rd_error[ChTable]),
    .tbl_addr_i          (rd_addr[ChTable]),
    .tbl_last_i          (rd_last[ChTable]),
    .tbl_void_i          (rd_void[ChTable]),
    .rcmd_valid_o        (cmd_valid[ChRows]),
    .rcmd_ready_i        (cmd_ready[ChRows]),
    .rcmd_addr_o         (cmd_addr[ChRows]),
    .rcmd_beats_o        (cmd_beats[ChRows]),
    .wcmd_valid_o        (wcmd_valid),
    .wcmd_ready_i        (wcmd_ready),
    .wcmd_addr_o         (wcmd_addr),
    .wcmd_job_o          (wcmd_job),
    .beg_valid_o         (beg_valid),
    .beg_ready_i         (beg_ready),
    .beg_scatter_o       (beg_scatter),
    .beg_stream_o        (beg_stream),
    .end_valid_o         (end_valid),
    .end_ready_i         (end_ready),
    .end_rows_o          (end_rows),
    .end_status_o        (end_status),
    .end_reason_o        (end_reason),
    .end_error_lookup_o  (end_error_lookup),
    .end_error_value_o   (end_error_value),
    .idle_o              (requester_idle)
  );
  assign cancel[ChRows]  = 1'b0;  // rows are asked for one by one, there is nothing to cancel
  assign cancel[ChTable] = 1'b0;

  hotline_read_engine #(
    .BusBits      (BusBits),
    .Channels     (Readers),
    .BurstBeats   (BurstBeats),
    .Outstanding  (ReadOutstanding),
    .FifoBeats    (ReadFifoBeats),
    .CommandDepth (4)
  ) u_read (
    .clk_i,
    .rst_ni,
    .cmd_valid_i (cmd_valid),
    .cmd_ready_o (cmd_ready),
    .cmd_addr_i  (cmd_addr),
    .cmd_beats_i (cmd_beats),
    .cancel_i    (cancel),
    .flush_i     (abort_i),
    .out_valid_o (rd_valid),
    .out_ready_i (rd_ready),
    .out_data_o  (rd_data),
    .out_error_o (rd_error),
    .out_addr_o  (rd_addr),
    .out_last_o  (rd_last),
    .out_void_o  (rd_void),
    .idle_o      (rd_idle),
    .m_ar_valid_o,
    .m_ar_ready_i,
    .m_ar_addr_o,
    .m_ar_len_o,
    .m_r_valid_i,
    .m_r_ready_o,
    .m_r_data_i,
    .m_r_resp_i,
    .m_r_last_i,
    .m_r_addr_i
  );

  // ----------------------------------------------------------------- requester to mover: queues
  logic        beg_q_valid, beg_q_ready, beg_q_scatter, beg_q_stream;
  logic        end_q_valid, end_q_ready;
  logic [31:0] end_q_rows, end_q_error_lookup;
  logic [7:0]  end_q_status, end_q_reason;
  logic [63:0] end_q_error_value;
  logic        wq_valid, wq_ready;
  logic [1:0]  wq_job;
  logic [63:0] wq_addr;

  hotline_stream_fifo #(.Width(2), .Depth(2)) u_begin (
    .clk_i,
    .rst_ni,
    .flush_i     (1'b0),
    .in_valid_i  (beg_valid),
    .in_ready_o  (beg_ready),
    .in_data_i   ({beg_scatter, beg_stream}),
    .out_valid_o (beg_q_valid),
    .out_ready_i (beg_q_ready),
    .out_data_o  ({beg_q_scatter, beg_q_stream}),
    .count_o     ()
  );

  hotline_stream_fifo #(.Width(32 + 8 + 8 + 32 + 64), .Depth(2)) u_end (
    .clk_i,
    .rst_ni,
    .flush_i     (1'b0),
    .in_valid_i  (end_valid),
    .in_ready_o  (end_ready),
    .in_data_i   ({end_rows, end_status, end_reason, end_error_lookup, end_error_value}),
    .out_valid_o (end_q_valid),
    .out_ready_i (end_q_ready),
    .out_data_o  ({end_q_rows, end_q_status, end_q_reason, end_q_error_lookup,
                   end_q_error_value}),
    .count_o     ()
  );

  hotline_stream_fifo #(.Width(66), .Depth(RowsInFlight)) u_write_commands (
    .clk_i,
    .rst_ni,
    .flush_i     (1'b0),
    .in_valid_i  (wcmd_valid),
    .in_ready_o  (wcmd_ready),
    .in_data_i   ({wcmd_job, wcmd_addr}),
    .out_valid_o (wq_valid),
    .out_ready_i (wq_ready),
    .out_data_o  ({wq_job, wq_addr}),
    .count_o     ()
  );

  // ------------------------------------------------------------------------------------- mover
  logic                 out_valid, out_ready, out_last, wr_cmd_valid, wr_cmd_ready;
  logic [WordsBits-1:0] out_words;
  logic                 mark_valid, mark_ready, mark_go, done_ready, mover_idle;
  logic [7:0]           mv_status, mv_reason;
  logic [31:0]          mv_lookups, mv_stalls, mv_error_lookup;
  logic [63:0]          mv_error_value;

  hotline_row_mover #(
    .BusBits(BusBits)
  ) u_mover (
    .clk_i,
    .rst_ni,
    .abort_i,
    .beg_valid_i        (beg_q_valid),
    .beg_ready_o        (beg_q_ready),
    .beg_scatter_i      (beg_q_scatter),
    .beg_stream_i       (beg_q_stream),
    .end_valid_i        (end_q_valid),
    .end_ready_o        (end_q_ready),
    .end_rows_i         (end_q_rows),
    .end_status_i       (end_q_status),
    .end_reason_i       (end_q_reason),
    .end_error_lookup_i (end_q_error_lookup),
    .end_error_value_i  (end_q_error_value),
    .req_valid_i        (wq_valid),
    .req_ready_o        (wq_ready),
    .req_job_i          (wq_job),
    .wcmd_valid_o       (wr_cmd_valid),
    .wcmd_ready_i       (wr_cmd_ready),
    .dat_valid_i        (rd_valid[ChRows]),
    .dat_ready_o        (rd_ready[ChRows]),
    .dat_error_i        (rd_error[ChRows]),
    .dat_addr_i         (rd_addr[ChRows]),
    .dat_last_i         (rd_last[ChRows]),
    .dat_void_i         (rd_void[ChRows]),
    .out_valid_o        (out_valid),
    .out_ready_i        (out_ready),
    .out_words_o        (out_words),
    .out_last_o         (out_last),
    .mark_valid_o       (mark_valid),
    .mark_ready_i       (mark_go),
    .res_status_o       (mv_status),
    .res_reason_o       (mv_reason),
    .res_lookups_o      (mv_lookups),
    .res_stalls_o       (mv_stalls),
    .res_error_lookup_o (mv_error_lookup),
    .res_error_value_o  (mv_error_value),
    .stat_busy_o,
    .stat_stall_read_o,
    .stat_stall_write_o,
    .idle_o             (mover_idle)
  );

  // -------------------------------------------------------------------------------- completion
  // The mark and the job's result leave the mover together. `done_ready` does not depend on
  // `mark_ready`, so the engine sees a mark only when there is room for the result.
  logic        done_valid, acked_valid, acked_ready, acked_error;
  logic [63:0] acked_addr;
  logic [7:0]  dn_status, dn_reason;
  logic [31:0] dn_lookups, dn_stalls, dn_error_lookup;
  logic [63:0] dn_error_value;
  logic        res_load, promises, write_failed, aborted;

  assign acked_ready = res_load;
  assign mark_go     = mark_ready && done_ready;

  hotline_stream_fifo #(.Width(8 + 8 + 32 + 32 + 32 + 64), .Depth(2)) u_done (
    .clk_i,
    .rst_ni,
    .flush_i     (1'b0),
    .in_valid_i  (mark_valid && mark_ready),
    .in_ready_o  (done_ready),
    .in_data_i   ({mv_status, mv_reason, mv_lookups, mv_stalls, mv_error_lookup,
                   mv_error_value}),
    .out_valid_o (done_valid),
    .out_ready_i (res_load),
    .out_data_o  ({dn_status, dn_reason, dn_lookups, dn_stalls, dn_error_lookup,
                   dn_error_value}),
    .count_o     ()
  );

  hotline_write_engine #(
    .BusBits      (BusBits),
    .Channels     (1),
    .BurstBeats   (BurstBeats),
    .Outstanding  (WriteOutstanding),
    .FifoBeats    (4 * BurstBeats),
    .CommandDepth (4)
  ) u_write (
    .clk_i,
    .rst_ni,
    .cmd_valid_i   (wr_cmd_valid),
    .cmd_ready_o   (wr_cmd_ready),
    .cmd_addr_i    (wq_addr),
    .in_valid_i    (out_valid),
    .in_ready_o    (out_ready),
    .in_data_i     (rd_data[ChRows]),
    .in_words_i    (out_words),
    .in_last_i     (out_last),
    .mark_valid_i  (mark_valid && done_ready),
    .mark_ready_o  (mark_ready),
    .acked_valid_o (acked_valid),
    .acked_ready_i (acked_ready),
    .acked_error_o (acked_error),
    .acked_addr_o  (acked_addr),
    .cancel_i      (abort_i),
    .idle_o        (wr_idle),
    .m_aw_valid_o,
    .m_aw_ready_i,
    .m_aw_addr_o,
    .m_aw_len_o,
    .m_w_valid_o,
    .m_w_ready_i,
    .m_w_data_o,
    .m_w_strb_o,
    .m_w_last_o,
    .m_b_valid_i,
    .m_b_ready_o,
    .m_b_resp_i,
    .m_b_addr_i
  );

  // A job is complete when its writes are answered. An abort before that may have dropped beats
  // behind the mark, so only what happens later leaves the status alone: OK, and the BAD_INDEX of a
  // SCATTER, which promises the records before it (a GATHER promises none, its count is 0).
  assign res_load     = done_valid && acked_valid && !res_valid_o;
  assign promises     = dn_status == StatusOk || (dn_status == StatusBadIndex && dn_lookups != '0);
  assign aborted      = abort_i && promises;
  assign write_failed = acked_error && !aborted && promises;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) res_valid_o <= 1'b0;
    else         res_valid_o <= res_load || (res_valid_o && !res_ready_i);
  end

  // Not reset: qualified by res_valid_o.
  always_ff @(posedge clk_i) begin
    if (res_load) begin
      res_status_o       <= aborted ? StatusAborted : write_failed ? StatusAxiError : dn_status;
      res_reason_o       <= aborted ? ReasonNone : write_failed ? ReasonWrite : dn_reason;
      res_lookups_o      <= aborted || write_failed ? 32'd0 : dn_lookups;
      res_error_lookup_o <= aborted || write_failed ? 32'd0 : dn_error_lookup;
      res_error_value_o  <= aborted ? 64'd0 : write_failed ? acked_addr : dn_error_value;
      res_stalls_o       <= dn_stalls;
    end
  end

  assign res_epoch_o          = '0;
  assign res_samples_o        = '0;
  assign res_popular_o        = '0;
  assign res_cold_rows_o      = '0;
  assign res_pinned_lookups_o = '0;
  assign res_eal_lookups_o    = '0;
  assign res_cold_lookups_o   = '0;
  assign res_error_sample_o   = '0;

  assign stat_stall_bank_o    = 1'b0;
  assign stat_stall_tracker_o = 1'b0;

  assign idle_o = front_q == FrontIdle && requester_idle && mover_idle && !beg_q_valid
                  && !done_valid && !res_valid_o && rd_idle && wr_idle;

`ifndef SYNTHESIS
  ResultStable_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    res_valid_o && !res_ready_i |=> res_valid_o
      && $stable({res_status_o, res_reason_o, res_lookups_o, res_error_value_o}));
`endif

endmodule
