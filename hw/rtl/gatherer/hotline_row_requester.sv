// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Turns the row ids of a job into read and write commands, one row per cycle.
///
/// A job arrives as a bundle of arguments; its row ids arrive as beats of the ids stream (the
/// caller has started that read). Each id is checked, and its record's address computed:
///
///   ids beat --> lane --> id < rows ? --> segment, row --> row * record_bytes --> base + --> queue
///                 s0         s1               s2                  s3                 s4
///
/// GATHER: one write command for the whole output, then per row a read command into the store.
/// SCATTER: per row a read command into RECORDS and a write command into the store.
/// `beg_*` announces a job to the mover before its first command, `end_*` closes it: how many rows
/// were requested and which event, if any, stopped it. Events are found in the order of the ids,
/// so they do not depend on the memory's timing.
///
/// Throughput  One row per cycle while the commands are taken.
/// Latency     Five cycles from an ids beat to its first read command.
/// Stalls      By `rcmd_ready_i`, `wcmd_ready_i`; at most `QueueRows` rows wait inside.
/// Errors      Row id >= rows: BAD_INDEX. Error response in the ids or in the segment table:
///             AXI_ERROR, reason READ. The rest of the ids stream is cancelled and drained.
/// Abort       `abort_i` (level) stops the job as an event would; the mover knows the status.
/// Reset       Drops the job.
module hotline_row_requester #(
  /// Width of the data bus.
  parameter int unsigned BusBits   = 64,
  /// Rows between the address computation and the commands; at least 8.
  parameter int unsigned QueueRows = 16
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               abort_i,

  /// A job whose ids stream was started (unless `lookups` is 0).
  input  logic               job_valid_i,
  output logic               job_ready_o,
  input  logic               job_scatter_i,
  input  logic [31:0]        job_lookups_i,
  input  logic [31:0]        job_rows_i,
  input  logic [12:0]        job_record_bytes_i,
  input  logic [6:0]         job_segments_i,
  input  logic [4:0]         job_segment_shift_i,
  input  logic [63:0]        job_store_i,
  input  logic [63:0]        job_records_i,

  /// Row ids, from the read engine.
  input  logic               ids_valid_i,
  output logic               ids_ready_o,
  input  logic [BusBits-1:0] ids_data_i,
  input  logic               ids_error_i,
  input  logic [63:0]        ids_addr_i,
  input  logic               ids_last_i,
  input  logic               ids_void_i,
  output logic               ids_cancel_o,

  /// Segment table: its read command and its beats.
  output logic               tcmd_valid_o,
  input  logic               tcmd_ready_i,
  output logic [63:0]        tcmd_addr_o,
  output logic [31:0]        tcmd_beats_o,
  input  logic               tbl_valid_i,
  output logic               tbl_ready_o,
  input  logic [BusBits-1:0] tbl_data_i,
  input  logic               tbl_error_i,
  input  logic [63:0]        tbl_addr_i,
  input  logic               tbl_last_i,
  input  logic               tbl_void_i,

  /// Read commands, one per row.
  output logic               rcmd_valid_o,
  input  logic               rcmd_ready_i,
  output logic [63:0]        rcmd_addr_o,
  output logic [31:0]        rcmd_beats_o,

  /// Write commands; `job` counts the jobs.
  output logic               wcmd_valid_o,
  input  logic               wcmd_ready_i,
  output logic [63:0]        wcmd_addr_o,
  output logic [1:0]         wcmd_job_o,

  /// Begin of a job; `stream`: a GATHER with an output stream.
  output logic               beg_valid_o,
  input  logic               beg_ready_i,
  output logic               beg_scatter_o,
  output logic               beg_stream_o,

  /// End of a job: `rows` were requested; `status` other than OK names the event that stopped it.
  output logic               end_valid_o,
  input  logic               end_ready_i,
  output logic [31:0]        end_rows_o,
  output logic [7:0]         end_status_o,
  output logic [7:0]         end_reason_o,
  output logic [31:0]        end_error_lookup_o,
  output logic [63:0]        end_error_value_o,

  output logic               idle_o
);

  import hotline_pkg::*;

  localparam int unsigned Lanes      = BusBits / 32;
  localparam int unsigned LaneBits   = $clog2(Lanes);
  localparam int unsigned BeatShift  = $clog2(BusBits / 8);
  localparam int unsigned BaseLanes  = BusBits / 64;               // table entries of a beat
  localparam int unsigned TableBeats = 64 / BaseLanes;
  localparam int unsigned TableBits  = $clog2(TableBeats);
  localparam int unsigned CreditBits = $clog2(QueueRows + 1);

  if (BusBits < 64 || BusBits > 512 || (BusBits & (BusBits - 1)) != 0) begin : gen_bad_bus
    $fatal(1, "%m: BusBits must be 64, 128, 256 or 512");
  end
  if (QueueRows < 8) begin : gen_bad_queue
    $fatal(1, "%m: QueueRows must be at least 8");
  end

  typedef enum logic [2:0] {
    StIdle,       // no job
    StBegin,      // announces the job to the mover
    StOutput,     // GATHER: command of the output stream
    StTable,      // asks for the segment table
    StTableLoad,  // takes the segment table
    StRun,        // one id per cycle
    StDrain,      // pops what is left of the ids stream
    StEnd         // waits for the pipeline to empty, closes the job
  } state_e;

  state_e state_q, state_d;

  // ---------------------------------------------------------------------- arguments of the job
  logic        scatter_q;
  logic [1:0]  number_q;
  logic [31:0] lookups_q, rows_q;
  logic [12:0] record_bytes_q;
  logic [6:0]  segments_q;
  logic [4:0]  shift_q;
  logic [63:0] store_q, records_q;
  logic        job_fire;

  assign job_ready_o = state_q == StIdle;
  assign job_fire    = job_valid_i && job_ready_o;

  always_ff @(posedge clk_i) begin
    if (job_fire) begin
      scatter_q      <= job_scatter_i;
      lookups_q      <= job_lookups_i;
      rows_q         <= job_rows_i;
      record_bytes_q <= job_record_bytes_i;
      segments_q     <= job_segments_i;
      shift_q        <= job_segment_shift_i;
      store_q        <= job_store_i;
    end
  end

  // ------------------------------------------------------------------------------------- event
  logic        event_d, event_q;             // something stopped the job
  logic [7:0]  ev_status_d, ev_status_q, ev_reason_d, ev_reason_q;
  logic [31:0] ev_lookup_d, ev_lookup_q;
  logic [63:0] ev_value_d, ev_value_q;

  // ------------------------------------------------------------------------- s0: lane to id
  logic                  take, pop, last_popped_q, last_popped_d, cancelled_q, cancelled_d;
  logic [LaneBits-1:0]   lane_q, lane_d;
  logic [31:0]           remaining_q, remaining_d;
  logic [CreditBits-1:0] credits_q;
  logic                  row_pop;

  // ------------------------------------------------------------------- s1 ... s3: the pipeline
  logic        s1_valid_q, s2_valid_q, s3_valid_q, s1_bad, s1_pass;
  logic [31:0] s1_id_q, passed_q;
  logic [5:0]  s1_segment;
  logic [31:0] s1_row, s2_row_q;
  logic [38:0] s3_product_q;
  logic [63:0] s3_base_q;

  assign s1_bad  = s1_valid_q && s1_id_q >= rows_q;
  assign s1_pass = s1_valid_q && !s1_bad && !event_q;

  // ------------------------------------------------------------------------- state machine
  always_comb begin
    state_d       = state_q;
    event_d       = event_q;
    ev_status_d   = ev_status_q;
    ev_reason_d   = ev_reason_q;
    ev_lookup_d   = ev_lookup_q;
    ev_value_d    = ev_value_q;
    lane_d        = lane_q;
    remaining_d   = remaining_q;
    last_popped_d = last_popped_q;
    cancelled_d   = cancelled_q;
    take          = 1'b0;
    pop           = 1'b0;
    tbl_ready_o   = 1'b0;
    ids_cancel_o  = 1'b0;

    unique case (state_q)
      StIdle: begin
        if (job_valid_i) begin
          state_d       = StBegin;
          event_d       = 1'b0;
          ev_status_d   = StatusOk;
          ev_reason_d   = ReasonNone;
          ev_lookup_d   = '0;
          ev_value_d    = '0;
          lane_d        = '0;
          remaining_d   = job_lookups_i;
          last_popped_d = job_lookups_i == 0;
          cancelled_d   = 1'b0;
        end
      end
      StBegin: begin
        if (beg_ready_i) begin
          if (lookups_q == 0) state_d = StEnd;
          else if (!scatter_q) state_d = StOutput;
          else if (segments_q > 7'd1) state_d = StTable;
          else state_d = StRun;
        end
      end
      StOutput: begin
        if (wcmd_ready_i) state_d = segments_q > 7'd1 ? StTable : StRun;
      end
      StTable: begin
        if (tcmd_ready_i) state_d = StTableLoad;
      end
      StTableLoad: begin
        tbl_ready_o = 1'b1;
        if (tbl_valid_i && tbl_error_i && !event_q) begin
          event_d     = 1'b1;
          ev_status_d = StatusAxiError;
          ev_reason_d = ReasonRead;
          ev_value_d  = tbl_addr_i;
        end
        if (tbl_valid_i && tbl_last_i) begin
          // An incomplete table (abort) must not be used.
          if (tbl_void_i || event_d) state_d = StDrain;
          else state_d = StRun;
        end
      end
      StRun: begin
        if (s1_bad) begin
          event_d     = 1'b1;
          ev_status_d = StatusBadIndex;
          ev_reason_d = ReasonRowId;
          ev_lookup_d = passed_q;
          ev_value_d  = {32'd0, s1_id_q};
          state_d     = StDrain;
        end else if (abort_i) begin
          state_d = StDrain;
        end else if (remaining_q == 0) begin
          if (!s1_valid_q) state_d = StEnd;
        end else if (ids_valid_i && (ids_error_i || ids_void_i)) begin
          if (ids_error_i && !ids_void_i) begin
            event_d     = 1'b1;
            ev_status_d = StatusAxiError;
            ev_reason_d = ReasonRead;
            ev_value_d  = ids_addr_i;
          end
          state_d = StDrain;
        end else if (ids_valid_i && credits_q != 0) begin
          take        = 1'b1;
          lane_d      = lane_q + 1'b1;
          remaining_d = remaining_q - 32'd1;
          pop         = lane_q == LaneBits'(Lanes - 1) || remaining_q == 32'd1;
          if (pop && ids_last_i) last_popped_d = 1'b1;
        end
      end
      StDrain: begin
        if (last_popped_q) begin
          state_d = StEnd;
        end else begin
          ids_cancel_o = !cancelled_q;
          cancelled_d  = 1'b1;
          pop          = ids_valid_i;
          if (ids_valid_i && ids_last_i) begin
            last_popped_d = 1'b1;
            state_d       = StEnd;
          end
        end
      end
      StEnd: begin
        if (end_valid_o && end_ready_i) state_d = StIdle;
      end
      default: state_d = StIdle;
    endcase
  end

  assign ids_ready_o = pop;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      s3_valid_q <= 1'b0;
      number_q   <= '0;
      credits_q  <= CreditBits'(QueueRows);
    end else begin
      state_q    <= state_d;
      s1_valid_q <= take;
      s2_valid_q <= s1_pass;
      s3_valid_q <= s2_valid_q;
      number_q   <= number_q + 2'(job_fire);
      // A bad or stopped row gives its place back at s1, all others when their commands leave.
      credits_q  <= credits_q - CreditBits'(take) + CreditBits'(row_pop)
                    + CreditBits'(s1_valid_q && !s1_pass);
    end
  end

  always_ff @(posedge clk_i) begin
    event_q       <= event_d;
    ev_status_q   <= ev_status_d;
    ev_reason_q   <= ev_reason_d;
    ev_lookup_q   <= ev_lookup_d;
    ev_value_q    <= ev_value_d;
    lane_q        <= lane_d;
    remaining_q   <= remaining_d;
    last_popped_q <= last_popped_d;
    cancelled_q   <= cancelled_d;
    passed_q      <= state_q == StIdle ? 32'd0 : passed_q + 32'(s1_pass);
  end

  // ----------------------------------------------------------------------------- segment table
  // Written a beat at a time, read an entry at a time.
  logic [TableBits-1:0] tbl_beat_q;
  logic [BusBits-1:0]   tbl_rdata;
  logic [5:0]           s2_segment_q;

  always_ff @(posedge clk_i) begin
    if (state_q == StTable) tbl_beat_q <= '0;
    else if (tbl_valid_i && tbl_ready_o) tbl_beat_q <= tbl_beat_q + 1'b1;
  end

  hotline_ram_1r1w #(
    .Width(BusBits),
    .Depth(TableBeats)
  ) u_table (
    .clk_i,
    .we_i    (tbl_valid_i && tbl_ready_o),
    .waddr_i (tbl_beat_q),
    .wdata_i (tbl_data_i),
    .re_i    (1'b1),
    .raddr_i (s1_segment[5 -: TableBits]),
    .rdata_o (tbl_rdata)
  );

  // One segment: the pointer is the store itself, and no bit of the id selects anything.
  assign s1_segment = segments_q > 7'd1 ? 6'(s1_id_q >> shift_q) : 6'd0;
  assign s1_row     = segments_q > 7'd1 ? s1_id_q & ~(32'hFFFF_FFFF << shift_q) : s1_id_q;

  logic [63:0] s2_base;
  if (BaseLanes == 1) begin : gen_one_base
    logic unused_segment;
    assign unused_segment = ^s2_segment_q;
    assign s2_base = segments_q > 7'd1 ? tbl_rdata : store_q;
  end else begin : gen_bases
    logic [5-TableBits:0] s2_lane;
    logic                 unused_segment;
    assign s2_lane        = s2_segment_q[5-TableBits:0];
    assign unused_segment = ^s2_segment_q;
    assign s2_base        = segments_q > 7'd1 ? tbl_rdata[64*s2_lane +: 64] : store_q;
  end

  always_ff @(posedge clk_i) begin
    s1_id_q      <= ids_data_i[32*lane_q +: 32];
    s2_row_q     <= s1_row;
    s2_segment_q <= s1_segment;
    s3_product_q <= {7'd0, s2_row_q} * {32'd0, record_bytes_q[12:6]};
    s3_base_q    <= s2_base;
  end

  // --------------------------------------------------------------------- rows to commands
  // The queue never overflows: `credits_q` counts its free places and the pipeline's.
  logic        row_valid, row_in_ready, row_ready;
  logic [63:0] row_addr;

  hotline_stream_fifo #(
    .Width(64),
    .Depth(QueueRows)
  ) u_rows (
    .clk_i,
    .rst_ni,
    .flush_i     (1'b0),
    .in_valid_i  (s3_valid_q),
    .in_ready_o  (row_in_ready),
    .in_data_i   (s3_base_q + {19'd0, s3_product_q, 6'd0}),
    .out_valid_o (row_valid),
    .out_ready_i (row_ready),
    .out_data_o  (row_addr),
    .count_o     ()
  );

  // A row leaves when every command that it needs was taken; `*_sent_q` remembers the first.
  logic rcmd_sent_q, wcmd_sent_q, rcmd_done, wcmd_done;

  assign rcmd_valid_o = row_valid && !rcmd_sent_q;
  assign rcmd_addr_o  = scatter_q ? records_q : row_addr;
  assign rcmd_beats_o = 32'(record_bytes_q >> BeatShift);
  assign wcmd_valid_o = state_q == StOutput || (row_valid && scatter_q && !wcmd_sent_q);
  assign wcmd_addr_o  = scatter_q ? row_addr : records_q;
  assign wcmd_job_o   = number_q;
  assign rcmd_done    = rcmd_sent_q || rcmd_ready_i;
  assign wcmd_done    = !scatter_q || wcmd_sent_q || wcmd_ready_i;
  assign row_ready    = rcmd_done && wcmd_done;
  assign row_pop      = row_valid && row_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rcmd_sent_q <= 1'b0;
      wcmd_sent_q <= 1'b0;
    end else begin
      rcmd_sent_q <= row_valid && !row_pop && rcmd_done;
      wcmd_sent_q <= row_valid && !row_pop && scatter_q && wcmd_done;
    end
  end

  // RECORDS is walked through row by row.
  always_ff @(posedge clk_i) begin
    if (job_fire) records_q <= job_records_i;
    else if (row_pop && scatter_q) records_q <= records_q + {51'd0, record_bytes_q};
  end

  // -------------------------------------------------------------------------- begin, end, idle
  assign beg_valid_o   = state_q == StBegin;
  assign beg_scatter_o = scatter_q;
  assign beg_stream_o  = !scatter_q && lookups_q != 0;

  assign tcmd_valid_o = state_q == StTable;
  assign tcmd_addr_o  = store_q;
  assign tcmd_beats_o = (32'(segments_q) + 32'(BaseLanes - 1)) / 32'(BaseLanes);

  assign end_valid_o        = state_q == StEnd && !s1_valid_q && !s2_valid_q && !s3_valid_q
                              && credits_q == CreditBits'(QueueRows);
  assign end_rows_o         = passed_q;
  assign end_status_o       = ev_status_q;
  assign end_reason_o       = ev_reason_q;
  assign end_error_lookup_o = ev_lookup_q;
  assign end_error_value_o  = ev_value_q;
  assign idle_o             = state_q == StIdle;

`ifndef SYNTHESIS
  QueueFits_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s3_valid_q |-> row_in_ready);
  ReadStable_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    rcmd_valid_o && !rcmd_ready_i |=> rcmd_valid_o && $stable({rcmd_addr_o, rcmd_beats_o}));
  WriteStable_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    wcmd_valid_o && !wcmd_ready_i |=> wcmd_valid_o && $stable({wcmd_addr_o, wcmd_job_o}));
  EndStable_A: assert property (@(posedge clk_i) disable iff (!rst_ni)
    end_valid_o && !end_ready_i |=> end_valid_o);
`else
  logic unused_ready;
  assign unused_ready = row_in_ready;
`endif

endmodule
