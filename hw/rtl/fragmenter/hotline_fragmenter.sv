// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// The fragmenter core: CLEAR, LEARN, FRAGMENT, DUMP, LOAD and EVICT on an AXI4 master.
///
/// Up to three jobs are inside, one in each part: the *reader* starts the reads of the next job, the
/// *processing* handles the current one, the *closer* waits for the write responses of the last.
///
///  job -> reader ............................... processing ............................. closer -> res
///            |                                                                               |
///            | ids      +----------+   +--------+   +-----+   +-----------------+  indices   |
///            +--------> | splitter |-->| bounds |-->| EAL |-->| slice FIFO      |--------> write
///            |          +----------+   +--------+   +-----+   |    assembler    |  samples engine
///            | offsets      ^                         |       +-----------------+  bitmap    |
///            +--------> lengths                       v cold lanes     ^           cold rows AXI
///           read                                    picker --> cold tracker
///          engine
///
/// A job is a stream of slices (`hotline_splitter`) that ends with one terminal slice, whatever
/// happens. What stops a job early is decided in the order of the stream, so it does not depend on
/// the memory's timing: offsets and read errors in the splitter, row ids in the bounds check,
/// overflow in the assembler. The block that stops a job ignores all slices behind; the splitter
/// cancels what is left to read, and the assembler closes the output streams.
///
/// Throughput  FRAGMENT: one slice per cycle, that is one beat of ids if no beat holds two ends of
///             samples; then W is the limit. See docs/architecture.md, "Throughput".
/// Latency     About 45 cycles from the first ids beat to the first beat of indices.
/// Stalls      `stat_stall_*`: by the memory, the EAL's banks, the tracker.
/// Errors      As in docs/architecture.md; `hotline_job_closer` tells which one wins.
/// Abort       `abort_i` ends all jobs inside: LEARN, LOAD and EVICT after the slice being cut, the
///             write streams at the next burst.
/// Reset       Drops all jobs; the EAL is empty and the epoch 0 afterwards. The memory must be reset
///             with it.
module hotline_fragmenter import hotline_pkg::*, hotline_fragment_pkg::*; #(
  /// Width of the data bus: 64, 128, 256 or 512.
  parameter int unsigned BusBits          = 64,
  parameter int unsigned EalSets          = 16,
  parameter int unsigned EalWays          = 16,
  parameter int unsigned EalBanks         = 2,
  /// Distinct cold rows of a job, at most.
  parameter int unsigned ColdRowsMax      = 128,
  /// Lookups of a sample, at most.
  parameter int unsigned LookupsMax       = 64,
  /// Cold lookups per cycle.
  parameter int unsigned ColdLanes        = 1,
  /// Longest burst in beats.
  parameter int unsigned BurstBeats       = 16,
  /// Bursts in flight, at most.
  parameter int unsigned ReadOutstanding  = 16,
  parameter int unsigned WriteOutstanding = 16,
  /// Bits of a job's tag in the cold tracker. Small values are for tests.
  parameter int unsigned GenerationBits   = 8
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 job_valid_i,
  output logic                 job_ready_o,
  input  logic [7:0]           job_operation_i,
  input  logic [63:0]          job_ids_i,
  input  logic [63:0]          job_offsets_i,
  input  logic [63:0]          job_indices_i,
  input  logic [63:0]          job_popular_i,
  input  logic [63:0]          job_nonpopular_i,
  input  logic [63:0]          job_bitmap_i,
  input  logic [63:0]          job_cold_i,
  input  logic [31:0]          job_lookups_i,
  input  logic [31:0]          job_samples_i,
  input  logic [31:0]          job_bags_i,
  input  logic [31:0]          job_lookups_per_sample_i,
  input  logic [31:0]          job_total_rows_i,
  input  logic [31:0]          job_pinned_rows_i,
  input  logic [31:0]          job_cold_base_i,
  input  logic [31:0]          job_cold_rows_max_i,
  input  logic [31:0]          job_flags_i,

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

  output logic [31:0]          epoch_o,
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

  localparam int unsigned Lanes        = BusBits / 32;
  localparam int unsigned LaneBits     = $clog2(Lanes);
  localparam int unsigned LengthBits   = $clog2(LookupsMax + 1);
  localparam int unsigned PositionBits = $clog2(ColdRowsMax);
  localparam int unsigned WordsBits    = $clog2(Lanes + 1);
  localparam int unsigned ColdCount    = $clog2(ColdLanes + 1);

  // Channels of the engines.
  localparam int unsigned ReadChannels  = 2;
  localparam int unsigned ChIds         = 0;
  localparam int unsigned ChOffsets     = 1;
  localparam int unsigned WriteChannels = 5;
  localparam int unsigned ChIndices     = 0;
  localparam int unsigned ChPopular     = 1;
  localparam int unsigned ChOther       = 2;
  localparam int unsigned ChBitmap      = 3;
  localparam int unsigned ChCold        = 4;

  // Covers 200 cycles of latency at full rate.
  localparam int unsigned ReadFifoBeats  = 256 > 2 * BurstBeats ? 256 : 2 * BurstBeats;
  localparam int unsigned WriteFifoBeats = 2 * BurstBeats;
  // Slices behind the EAL that wait for the tracker.
  localparam int unsigned SliceFifoDepth = 64;

  if (LookupsMax < 1 || LookupsMax > ColdRowsMax) begin : gen_bad_lookups
    $fatal(1, "%m: LookupsMax must be 1 ... ColdRowsMax, else a sample might never fit");
  end
  if (ColdLanes > Lanes) begin : gen_bad_lanes
    $fatal(1, "%m: ColdLanes must not exceed the words of a beat");
  end

  // ---------------------------------------------------------------------------------------- jobs
  typedef struct packed {
    logic [7:0]            operation;
    logic                  jagged;
    logic                  plain;
    logic                  frequency;
    logic [63:0]           indices;
    logic [63:0]           popular;
    logic [63:0]           nonpopular;
    logic [63:0]           bitmap;
    logic [63:0]           cold;
    logic [31:0]           lookups;
    logic [31:0]           samples;
    logic [15:0]           bags;
    logic [LengthBits-1:0] lookups_per_sample;
    logic [31:0]           total_rows;
    logic [31:0]           pinned_rows;
    logic [31:0]           cold_base;
    logic [31:0]           cold_rows_max;
  } job_t;

  typedef enum logic [2:0] {
    StIdle,    // no current job
    StStart,   // starts the blocks
    StRun,     // slices, or entries of a DUMP, pass
    StClear,   // the EAL is being cleared
    StFinish   // hands the result to the closer
  } state_e;

  job_t        job_in, next_q, job_q;
  state_e      state_q, state_d;
  logic        nxt_valid, hand_on, start, is_fragment, is_load, is_dump, is_clear, changes_eal;
  logic        entries, job_entries;
  logic        cut_short_q, cut_short_d;   // aborted before it began
  logic        has_indices, has_samples, has_cold;
  logic [31:0] offset_entries;
  logic [31:0] epoch_q, epoch_next, stalls_q;
  logic [31:0] dmp_slot;                   // below 2**30
  logic        unused_bits;

  assign job_entries = job_operation_i == OpLoad && !job_flags_i[FlagPlainList];

  assign job_in = '{
    operation: job_operation_i,
    jagged: job_bags_i != '0,
    plain: job_flags_i[FlagPlainList],
    frequency: job_flags_i[FlagFrequency],
    indices: job_indices_i,
    popular: job_popular_i,
    nonpopular: job_nonpopular_i,
    bitmap: job_bitmap_i,
    cold: job_cold_i,
    lookups: job_lookups_i,
    samples: job_samples_i,
    bags: job_bags_i[15:0],
    lookups_per_sample: LengthBits'(job_lookups_per_sample_i),
    total_rows: job_total_rows_i,
    pinned_rows: job_pinned_rows_i,
    cold_base: job_cold_base_i,
    cold_rows_max: job_cold_rows_max_i
  };
  // The shell has checked the upper bits.
  assign unused_bits = ^{job_bags_i[31:16], job_lookups_per_sample_i, job_flags_i, dmp_slot[31:30]};

  assign is_fragment = job_q.operation == OpFragment;
  assign is_load     = job_q.operation == OpLoad;
  assign is_dump     = job_q.operation == OpDump;
  assign is_clear    = job_q.operation == OpClear;
  assign changes_eal = is_clear || is_load || job_q.operation == OpLearn
                       || job_q.operation == OpEvict;
  assign entries     = is_load && !job_q.plain;
  assign has_indices = is_dump || ((is_fragment || is_load) && job_q.lookups != '0);
  assign has_samples = is_fragment && job_q.samples != '0;
  assign has_cold    = is_fragment && job_q.lookups != '0;

  always_ff @(posedge clk_i) begin
    if (job_valid_i && job_ready_o) begin
      next_q <= job_in;
    end
    if (hand_on) begin
      job_q <= next_q;
    end
  end

  // -------------------------------------------------------------------------------------- control
  logic trk_start_valid, trk_start_ready, clear_valid, clear_ready, dump_valid, dump_ready;
  logic splitter_idle, assembler_done, fin_valid, fin_ready, commands_ready;
  logic packers_empty;
  logic [WriteChannels-1:0] wr_valid;

  // The next job may share the channel of the indices in another way; and in an abort the write
  // engine must have swallowed everything before the abort may end.
  assign packers_empty   = !(wr_valid[ChIndices] && !is_fragment) && (!abort_i || wr_valid == '0);
  assign hand_on         = state_q == StIdle && nxt_valid;
  assign fin_valid       = state_q == StFinish;
  assign clear_valid     = state_q == StClear;
  assign trk_start_valid = state_q == StStart && is_fragment && commands_ready;
  assign dump_valid      = state_q == StStart && is_dump && commands_ready && !abort_i;

  always_comb begin
    state_d     = state_q;
    cut_short_d = cut_short_q;
    start       = 1'b0;
    unique case (state_q)
      StIdle: begin
        cut_short_d = 1'b0;
        if (nxt_valid) begin
          state_d = StStart;
        end
      end
      StStart: begin
        if (is_clear || is_dump) begin
          if (abort_i) begin
            cut_short_d = 1'b1;
            state_d     = StFinish;
          end else if (is_clear) begin
            state_d     = StClear;
          end else if (dump_ready && commands_ready) begin
            start       = 1'b1;
            state_d     = StRun;
          end
        end else if (commands_ready && (!is_fragment || trk_start_ready)) begin
          start   = 1'b1;
          state_d = StRun;
        end
      end
      StRun: begin
        if (assembler_done && splitter_idle && packers_empty) begin
          state_d = StFinish;
        end
      end
      StClear: begin
        if (clear_ready) begin
          state_d = StFinish;
        end
      end
      default: begin  // StFinish
        if (fin_ready) begin
          state_d = StIdle;
        end
      end
    endcase
  end

  assign epoch_next = epoch_q + 32'(changes_eal);
  assign epoch_o    = epoch_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      cut_short_q <= 1'b0;
      epoch_q     <= '0;
    end else begin
      state_q     <= state_d;
      cut_short_q <= cut_short_d;
      if (fin_valid && fin_ready) begin
        epoch_q   <= epoch_next;
      end
    end
  end

  // ----------------------------------------------------------------------------------------- reads
  logic [ReadChannels-1:0]              rd_cmd_valid, rd_cmd_ready, rd_valid, rd_ready, rd_error;
  logic [ReadChannels-1:0]              rd_last, rd_cancel, rd_pending, rd_drain;
  logic [ReadChannels-1:0][63:0]        rd_cmd_addr, rd_addr;
  logic [ReadChannels-1:0][31:0]        rd_cmd_beats;
  logic [ReadChannels-1:0][BusBits-1:0] rd_data;
  logic                                 drain, spl_ids_ready, len_off_ready, read_idle;

  hotline_fragment_reader #(
    .BusBits(BusBits)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .job_valid_i,
    .job_ready_o,
    .job_operation_i,
    .job_ids_i,
    .job_offsets_i,
    .job_lookups_i,
    .job_samples_i,
    .job_bags_i     (job_bags_i[15:0]),
    .job_entries_i  (job_entries),
    .nxt_valid_o    (nxt_valid),
    .nxt_ready_i    (state_q == StIdle),
    .cur_entries_o  (offset_entries),
    .drain_i        (drain),
    .ids_cmd_valid_o(rd_cmd_valid[ChIds]),
    .ids_cmd_ready_i(rd_cmd_ready[ChIds]),
    .ids_cmd_addr_o (rd_cmd_addr[ChIds]),
    .ids_cmd_beats_o(rd_cmd_beats[ChIds]),
    .ids_cancel_o   (rd_cancel[ChIds]),
    .ids_last_i     (rd_valid[ChIds] && rd_ready[ChIds] && rd_last[ChIds]),
    .ids_pending_o  (rd_pending[ChIds]),
    .ids_drain_o    (rd_drain[ChIds]),
    .off_cmd_valid_o(rd_cmd_valid[ChOffsets]),
    .off_cmd_ready_i(rd_cmd_ready[ChOffsets]),
    .off_cmd_addr_o (rd_cmd_addr[ChOffsets]),
    .off_cmd_beats_o(rd_cmd_beats[ChOffsets]),
    .off_cancel_o   (rd_cancel[ChOffsets]),
    .off_last_i     (rd_valid[ChOffsets] && rd_ready[ChOffsets] && rd_last[ChOffsets]),
    .off_pending_o  (rd_pending[ChOffsets]),
    .off_drain_o    (rd_drain[ChOffsets])
  );

  assign rd_ready[ChIds]     = spl_ids_ready || rd_drain[ChIds];
  assign rd_ready[ChOffsets] = len_off_ready || rd_drain[ChOffsets];

  hotline_read_engine #(
    .BusBits     (BusBits),
    .Channels    (ReadChannels),
    .BurstBeats  (BurstBeats),
    .Outstanding (ReadOutstanding),
    .FifoBeats   (ReadFifoBeats),
    .CommandDepth(2)
  ) u_read_engine (
    .clk_i,
    .rst_ni,
    .cmd_valid_i(rd_cmd_valid),
    .cmd_ready_o(rd_cmd_ready),
    .cmd_addr_i (rd_cmd_addr),
    .cmd_beats_i(rd_cmd_beats),
    .out_valid_o(rd_valid),
    .out_ready_i(rd_ready),
    .out_data_o (rd_data),
    .out_error_o(rd_error),
    .out_addr_o (rd_addr),
    .out_last_o (rd_last),
    .out_void_o (),
    .cancel_i   (rd_cancel),
    .flush_i    (abort_i),
    .idle_o     (read_idle),
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

  // ------------------------------------------------------------------------- splitter and bounds
  logic                   len_valid, len_ready;
  length_e                len_kind;
  logic [LengthBits-1:0]  len_length;
  reason_e                bad_reason, spl_reason, evt_reason;
  status_e                spl_status, evt_status;
  logic [31:0]            bad_sample, bad_lookup, spl_sample, spl_lookup, evt_sample, evt_lookup;
  logic [63:0]            bad_value, spl_value, evt_value;
  logic                   slc_valid, slc_ready, slc_end, slc_terminal;
  logic [BusBits-1:0]     slc_data;
  logic [Lanes-1:0]       slc_mask;
  logic [LaneBits:0]      slc_end_lane;
  logic                   bounds_stop, assembler_stop, stall_read, stall_write, stall_tracker;
  logic                   req_valid, req_ready, req_end, req_terminal;
  logic [Lanes-1:0][31:0] req_ids;
  logic [Lanes-1:0]       req_mask;
  logic [Lanes-1:0][1:0]  req_counters;
  logic [LaneBits:0]      req_end_lane;

  hotline_sample_lengths #(
    .BusBits   (BusBits),
    .LookupsMax(LookupsMax)
  ) u_lengths (
    .clk_i,
    .rst_ni,
    .start_i             (start && is_fragment),
    .stop_i              (drain),
    .jagged_i            (job_q.jagged),
    .samples_i           (job_q.samples),
    .lookups_i           (job_q.lookups),
    .lookups_per_sample_i(job_q.lookups_per_sample),
    .bags_i              (job_q.bags),
    .entries_i           (offset_entries),
    .off_valid_i         (rd_valid[ChOffsets]),
    .off_ready_o         (len_off_ready),
    .off_data_i          (rd_data[ChOffsets]),
    .off_error_i         (rd_error[ChOffsets]),
    .off_addr_i          (rd_addr[ChOffsets]),
    .len_valid_o         (len_valid),
    .len_ready_i         (len_ready),
    .len_kind_o          (len_kind),
    .len_length_o        (len_length),
    .bad_reason_o        (bad_reason),
    .bad_sample_o        (bad_sample),
    .bad_lookup_o        (bad_lookup),
    .bad_value_o         (bad_value)
  );

  hotline_splitter #(
    .BusBits   (BusBits),
    .LookupsMax(LookupsMax)
  ) u_splitter (
    .clk_i,
    .rst_ni,
    .start_i       (start && !is_dump),
    .idle_o        (splitter_idle),
    .fragment_i    (is_fragment),
    .entries_i     (entries),
    .lookups_i     (job_q.lookups),
    .abort_i,
    .stop_i        (bounds_stop || assembler_stop),
    .drain_o       (drain),
    .ids_pending_i (rd_pending[ChIds]),
    .off_pending_i (rd_pending[ChOffsets]),
    .len_valid_i   (len_valid),
    .len_ready_o   (len_ready),
    .len_kind_i    (len_kind),
    .len_length_i  (len_length),
    .bad_reason_i  (bad_reason),
    .bad_sample_i  (bad_sample),
    .bad_lookup_i  (bad_lookup),
    .bad_value_i   (bad_value),
    .ids_valid_i   (rd_valid[ChIds]),
    .ids_ready_o   (spl_ids_ready),
    .ids_data_i    (rd_data[ChIds]),
    .ids_error_i   (rd_error[ChIds]),
    .ids_addr_i    (rd_addr[ChIds]),
    .ids_last_i    (rd_last[ChIds]),
    .slc_valid_o   (slc_valid),
    .slc_ready_i   (slc_ready),
    .slc_data_o    (slc_data),
    .slc_mask_o    (slc_mask),
    .slc_end_o     (slc_end),
    .slc_end_lane_o(slc_end_lane),
    .slc_terminal_o(slc_terminal),
    .evt_status_o  (spl_status),
    .evt_reason_o  (spl_reason),
    .evt_sample_o  (spl_sample),
    .evt_lookup_o  (spl_lookup),
    .evt_value_o   (spl_value),
    .stall_o       (stall_read)
  );

  hotline_bounds_check #(
    .BusBits(BusBits)
  ) u_bounds (
    .clk_i,
    .rst_ni,
    .start_i       (start),
    .fragment_i    (is_fragment),
    .entries_i     (entries),
    .total_rows_i  (job_q.total_rows),
    .stop_o        (bounds_stop),
    .slc_valid_i   (slc_valid),
    .slc_ready_o   (slc_ready),
    .slc_data_i    (slc_data),
    .slc_mask_i    (slc_mask),
    .slc_end_i     (slc_end),
    .slc_end_lane_i(slc_end_lane),
    .slc_terminal_i(slc_terminal),
    .spl_status_i  (spl_status),
    .spl_reason_i  (spl_reason),
    .spl_sample_i  (spl_sample),
    .spl_lookup_i  (spl_lookup),
    .spl_value_i   (spl_value),
    .req_valid_o   (req_valid),
    .req_ready_i   (req_ready),
    .req_ids_o     (req_ids),
    .req_mask_o    (req_mask),
    .req_counters_o(req_counters),
    .req_end_o     (req_end),
    .req_end_lane_o(req_end_lane),
    .req_terminal_o(req_terminal),
    .evt_status_o  (evt_status),
    .evt_reason_o  (evt_reason),
    .evt_sample_o  (evt_sample),
    .evt_lookup_o  (evt_lookup),
    .evt_value_o   (evt_value)
  );

  // ------------------------------------------------------------------------------------------- EAL
  localparam int unsigned UserBits = LaneBits + 3;

  logic                   eal_valid, eal_ready, eal_terminal, eal_end, eal_idle;
  logic [LaneBits:0]      eal_end_lane;
  logic [Lanes-1:0]       eal_mask, eal_pinned, eal_hit, eal_rejected, eal_marked;
  logic [Lanes-1:0][31:0] eal_ids, eal_slots;
  logic                   dmp_valid, dmp_ready, dmp_last, dmp_void;
  logic [31:0]            dmp_row;
  logic [1:0]             dmp_counter;

  hotline_eal #(
    .Lanes   (Lanes),
    .Sets    (EalSets),
    .Ways    (EalWays),
    .Banks   (EalBanks),
    .UserBits(UserBits)
  ) u_eal (
    .clk_i,
    .rst_ni,
    .pinned_rows_i    (job_q.pinned_rows),
    .req_valid_i      (req_valid),
    .req_ready_o      (req_ready),
    .req_operation_i  (job_q.operation),
    .req_frequency_i  (job_q.frequency),
    .req_mask_i       (req_mask),
    .req_ids_i        (req_ids),
    .req_counters_i   (req_counters),
    .req_user_i       ({req_terminal, req_end, req_end_lane}),
    .res_valid_o      (eal_valid),
    .res_ready_i      (eal_ready),
    .res_user_o       ({eal_terminal, eal_end, eal_end_lane}),
    .res_mask_o       (eal_mask),
    .res_ids_o        (eal_ids),
    .res_counters_o   (),
    .res_pinned_o     (eal_pinned),
    .res_hit_o        (eal_hit),
    .res_rejected_o   (eal_rejected),
    .res_slots_o      (eal_slots),
    .clear_valid_i    (clear_valid),
    .clear_ready_o    (clear_ready),
    .dump_valid_i     (dump_valid),
    .dump_ready_o     (dump_ready),
    .ent_valid_o      (dmp_valid),
    .ent_ready_i      (dmp_ready),
    .ent_row_o        (dmp_row),
    .ent_slot_o       (dmp_slot),
    .ent_counter_o    (dmp_counter),
    .ent_last_o       (dmp_last),
    .ent_void_o       (dmp_void),
    .idle_o           (eal_idle),
    .stat_stall_bank_o(stat_stall_bank_o)
  );

  // ----------------------------------------------------------- behind the EAL: two ways, one order
  logic                   any_cold, sfo_valid, sfo_ready, pick_ready, fifo_ready;
  logic                   out_terminal, out_end;
  logic [LaneBits:0]      out_end_lane;
  logic [Lanes-1:0]       out_mask, out_pinned, out_hit, out_marked;
  logic [Lanes-1:0][31:0] out_words, eal_words;

  always_comb begin
    eal_marked = '0;
    if (is_fragment) begin
      eal_marked = eal_mask & ~eal_pinned & ~eal_hit;
    end else if (is_load) begin
      eal_marked = eal_rejected;
    end
    eal_words = is_fragment ? eal_slots : eal_ids;
  end

  assign any_cold  = is_fragment && eal_marked != '0;
  assign eal_ready = fifo_ready && (!any_cold || pick_ready);

  hotline_stream_fifo #(
    .Width(LaneBits + 3 + Lanes * 36),
    .Depth(SliceFifoDepth)
  ) u_slices (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (eal_valid && eal_ready),
    .in_ready_o (fifo_ready),
    .in_data_i  ({eal_terminal, eal_end, eal_end_lane, eal_mask, eal_pinned, eal_hit, eal_marked,
                  eal_words}),
    .out_valid_o(sfo_valid),
    .out_ready_i(sfo_ready),
    .out_data_o ({out_terminal, out_end, out_end_lane, out_mask, out_pinned, out_hit, out_marked,
                  out_words}),
    .count_o    ()
  );

  logic                                   bun_valid, bun_ready, bun_last, trk_valid, trk_ready;
  logic [ColdLanes-1:0]                   bun_mask, trk_mask, trk_new, trk_overflow;
  logic [ColdLanes-1:0][31:0]             bun_rows, trk_rows;
  logic [ColdLanes-1:0][LaneBits-1:0]     bun_lanes, trk_lanes;
  logic [ColdLanes-1:0][PositionBits-1:0] trk_positions;
  logic                                   trk_last, trk_slice_last, trk_idle;

  hotline_cold_picker #(
    .Lanes    (Lanes),
    .ColdLanes(ColdLanes)
  ) u_picker (
    .clk_i,
    .rst_ni,
    .slc_valid_i(eal_valid && any_cold && fifo_ready && pick_ready),
    .slc_ready_o(pick_ready),
    .slc_mask_i (eal_marked),
    .slc_rows_i (eal_ids),
    .bun_valid_o(bun_valid),
    .bun_ready_i(bun_ready),
    .bun_mask_o (bun_mask),
    .bun_rows_o (bun_rows),
    .bun_lanes_o(bun_lanes),
    .bun_last_o (bun_last)
  );

  hotline_cold_tracker #(
    .ColdRowsMax   (ColdRowsMax),
    .ColdLanes     (ColdLanes),
    .UserBits      (ColdLanes * LaneBits + 1),
    .GenerationBits(GenerationBits)
  ) u_tracker (
    .clk_i,
    .rst_ni,
    .start_valid_i  (trk_start_valid),
    .start_ready_o  (trk_start_ready),
    .cold_rows_max_i(job_q.cold_rows_max),
    .req_valid_i    (bun_valid),
    .req_ready_o    (bun_ready),
    .req_mask_i     (bun_mask),
    .req_rows_i     (bun_rows),
    .req_user_i     ({bun_lanes, bun_last}),
    .res_valid_o    (trk_valid),
    .res_ready_i    (trk_ready),
    .res_mask_o     (trk_mask),
    .res_rows_o     (trk_rows),
    .res_positions_o(trk_positions),
    .res_new_o      (trk_new),
    .res_overflow_o (trk_overflow),
    .res_user_o     ({trk_lanes, trk_slice_last}),
    .res_last_o     (trk_last),
    .idle_o         (trk_idle),
    .stall_o        (stall_tracker)
  );

  // ------------------------------------------------------------------------------------- assembler
  logic                       idx_valid, idx_ready, idx_last;
  logic [Lanes-1:0][31:0]     idx_data;
  logic [LaneBits:0]          idx_words;
  logic                       ent_valid, ent_ready, ent_last;
  logic [1:0][31:0]           ent_words;
  logic [1:0]                 ent_count;
  logic                       pop_valid, pop_ready, pop_last, pop_count;
  logic                       non_valid, non_ready, non_last, non_count;
  logic                       map_valid, map_ready, map_last, map_count;
  logic [31:0]                pop_word, non_word, map_word;
  logic                       col_valid, col_ready, col_last;
  logic [ColdLanes-1:0][31:0] col_words;
  logic [ColdCount-1:0]       col_count;
  logic                       overflow;
  logic [31:0]                cnt_samples, cnt_popular, cnt_lookups, cnt_pinned, cnt_eal, cnt_rows;

  hotline_assembler #(
    .Lanes       (Lanes),
    .ColdLanes   (ColdLanes),
    .PositionBits(PositionBits)
  ) u_assembler (
    .clk_i,
    .rst_ni,
    .start_i        (start),
    .fragment_i     (is_fragment),
    .load_i         (is_load),
    .dump_i         (is_dump),
    .entries_i      (entries),
    .cold_base_i    (job_q.cold_base),
    .has_indices_i  (has_indices),
    .has_samples_i  (has_samples),
    .has_cold_i     (has_cold),
    .done_o         (assembler_done),
    .stop_o         (assembler_stop),
    .slc_valid_i    (sfo_valid),
    .slc_ready_o    (sfo_ready),
    .slc_terminal_i (out_terminal),
    .slc_end_i      (out_end),
    .slc_end_lane_i (out_end_lane),
    .slc_mask_i     (out_mask),
    .slc_pinned_i   (out_pinned),
    .slc_hit_i      (out_hit),
    .slc_marked_i   (out_marked),
    .slc_words_i    (out_words),
    .trk_valid_i    (trk_valid),
    .trk_ready_o    (trk_ready),
    .trk_mask_i     (trk_mask),
    .trk_rows_i     (trk_rows),
    .trk_positions_i(trk_positions),
    .trk_new_i      (trk_new),
    .trk_overflow_i (trk_overflow),
    .trk_lanes_i    (trk_lanes),
    .trk_last_i     (trk_last && trk_slice_last),
    .dmp_valid_i    (dmp_valid),
    .dmp_ready_o    (dmp_ready),
    .dmp_row_i      (dmp_row),
    .dmp_slot_i     (dmp_slot[29:0]),
    .dmp_counter_i  (dmp_counter),
    .dmp_last_i     (dmp_last),
    .dmp_void_i     (dmp_void),
    .idx_valid_o    (idx_valid),
    .idx_ready_i    (idx_ready),
    .idx_data_o     (idx_data),
    .idx_words_o    (idx_words),
    .idx_last_o     (idx_last),
    .ent_valid_o    (ent_valid),
    .ent_ready_i    (ent_ready),
    .ent_words_o    (ent_words),
    .ent_count_o    (ent_count),
    .ent_last_o     (ent_last),
    .pop_valid_o    (pop_valid),
    .pop_ready_i    (pop_ready),
    .pop_word_o     (pop_word),
    .pop_count_o    (pop_count),
    .pop_last_o     (pop_last),
    .non_valid_o    (non_valid),
    .non_ready_i    (non_ready),
    .non_word_o     (non_word),
    .non_count_o    (non_count),
    .non_last_o     (non_last),
    .map_valid_o    (map_valid),
    .map_ready_i    (map_ready),
    .map_word_o     (map_word),
    .map_count_o    (map_count),
    .map_last_o     (map_last),
    .col_valid_o    (col_valid),
    .col_ready_i    (col_ready),
    .col_words_o    (col_words),
    .col_count_o    (col_count),
    .col_last_o     (col_last),
    .overflow_o     (overflow),
    .samples_o      (cnt_samples),
    .popular_o      (cnt_popular),
    .lookups_o      (cnt_lookups),
    .pinned_o       (cnt_pinned),
    .eal_o          (cnt_eal),
    .rows_o         (cnt_rows),
    .stall_o        (stall_write)
  );

  // ---------------------------------------------------------------------------------------- writes
  logic [WriteChannels-1:0]                wr_used, wr_cmd_valid, wr_cmd_ready;
  logic [WriteChannels-1:0]                wr_ready, wr_last;
  logic [WriteChannels-1:0][63:0]          wr_cmd_addr;
  logic [WriteChannels-1:0][BusBits-1:0]   wr_data;
  logic [WriteChannels-1:0][WordsBits-1:0] wr_words;
  logic                                    mark_valid, mark_ready, acked_valid, acked_ready;
  logic                                    acked_error, write_idle, closer_idle;
  logic [63:0]                             acked_addr;
  logic                                    pke_valid, pke_ready, pke_last;
  logic [BusBits-1:0]                      pke_data;
  logic [WordsBits-1:0]                    pke_words;

  // Commands go out all at once in StStart, when each channel that is used has room.
  always_comb begin
    wr_used            = '0;
    wr_used[ChIndices] = has_indices;
    wr_used[ChPopular] = has_samples;
    wr_used[ChOther]   = has_samples;
    wr_used[ChBitmap]  = has_samples;
    wr_used[ChCold]    = has_cold;
  end

  assign commands_ready = (wr_used & ~wr_cmd_ready) == '0;
  assign wr_cmd_valid   = start ? wr_used : '0;

  always_comb begin
    wr_cmd_addr[ChIndices] = job_q.indices;
    wr_cmd_addr[ChPopular] = job_q.popular;
    wr_cmd_addr[ChOther]   = job_q.nonpopular;
    wr_cmd_addr[ChBitmap]  = job_q.bitmap;
    wr_cmd_addr[ChCold]    = job_q.cold;
  end

  assign idx_ready            = wr_ready[ChIndices] && is_fragment;
  assign pke_ready            = wr_ready[ChIndices] && !is_fragment;
  assign wr_valid[ChIndices]  = is_fragment ? idx_valid : pke_valid;
  assign wr_data[ChIndices]   = is_fragment ? idx_data : pke_data;
  assign wr_words[ChIndices]  = is_fragment ? idx_words : pke_words;
  assign wr_last[ChIndices]   = is_fragment ? idx_last : pke_last;

  hotline_word_packer #(
    .Lanes  (Lanes),
    .InWords(2)
  ) u_pack_entries (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (ent_valid),
    .in_ready_o (ent_ready),
    .in_data_i  (ent_words),
    .in_count_i (ent_count),
    .in_last_i  (ent_last),
    .out_valid_o(pke_valid),
    .out_ready_i(pke_ready),
    .out_data_o (pke_data),
    .out_words_o(pke_words),
    .out_last_o (pke_last)
  );

  hotline_word_packer #(
    .Lanes  (Lanes),
    .InWords(1)
  ) u_pack_popular (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (pop_valid),
    .in_ready_o (pop_ready),
    .in_data_i  (pop_word),
    .in_count_i (pop_count),
    .in_last_i  (pop_last),
    .out_valid_o(wr_valid[ChPopular]),
    .out_ready_i(wr_ready[ChPopular]),
    .out_data_o (wr_data[ChPopular]),
    .out_words_o(wr_words[ChPopular]),
    .out_last_o (wr_last[ChPopular])
  );

  hotline_word_packer #(
    .Lanes  (Lanes),
    .InWords(1)
  ) u_pack_other (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (non_valid),
    .in_ready_o (non_ready),
    .in_data_i  (non_word),
    .in_count_i (non_count),
    .in_last_i  (non_last),
    .out_valid_o(wr_valid[ChOther]),
    .out_ready_i(wr_ready[ChOther]),
    .out_data_o (wr_data[ChOther]),
    .out_words_o(wr_words[ChOther]),
    .out_last_o (wr_last[ChOther])
  );

  hotline_word_packer #(
    .Lanes  (Lanes),
    .InWords(1)
  ) u_pack_bitmap (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (map_valid),
    .in_ready_o (map_ready),
    .in_data_i  (map_word),
    .in_count_i (map_count),
    .in_last_i  (map_last),
    .out_valid_o(wr_valid[ChBitmap]),
    .out_ready_i(wr_ready[ChBitmap]),
    .out_data_o (wr_data[ChBitmap]),
    .out_words_o(wr_words[ChBitmap]),
    .out_last_o (wr_last[ChBitmap])
  );

  hotline_word_packer #(
    .Lanes  (Lanes),
    .InWords(ColdLanes)
  ) u_pack_cold (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (col_valid),
    .in_ready_o (col_ready),
    .in_data_i  (col_words),
    .in_count_i (col_count),
    .in_last_i  (col_last),
    .out_valid_o(wr_valid[ChCold]),
    .out_ready_i(wr_ready[ChCold]),
    .out_data_o (wr_data[ChCold]),
    .out_words_o(wr_words[ChCold]),
    .out_last_o (wr_last[ChCold])
  );

  hotline_write_engine #(
    .BusBits     (BusBits),
    .Channels    (WriteChannels),
    .BurstBeats  (BurstBeats),
    .Outstanding (WriteOutstanding),
    .FifoBeats   (WriteFifoBeats),
    .CommandDepth(2)
  ) u_write_engine (
    .clk_i,
    .rst_ni,
    .cmd_valid_i  (wr_cmd_valid),
    .cmd_ready_o  (wr_cmd_ready),
    .cmd_addr_i   (wr_cmd_addr),
    .in_valid_i   (wr_valid),
    .in_ready_o   (wr_ready),
    .in_data_i    (wr_data),
    .in_words_i   (wr_words),
    .in_last_i    (wr_last),
    .mark_valid_i (mark_valid),
    .mark_ready_o (mark_ready),
    .acked_valid_o(acked_valid),
    .acked_ready_i(acked_ready),
    .acked_error_o(acked_error),
    .acked_addr_o (acked_addr),
    .cancel_i     (abort_i),
    .idle_o       (write_idle),
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

  // ----------------------------------------------------------------------------------------- result
  status_e fin_status;
  reason_e fin_reason;

  always_comb begin
    fin_status = evt_status;
    fin_reason = evt_reason;
    if (is_clear || is_dump) begin
      fin_status = cut_short_q ? StatusAborted : StatusOk;
      fin_reason = ReasonNone;
    end else if (is_fragment && overflow) begin
      // Nothing behind the overflow reached the assembler, so it was the first event.
      fin_status = StatusColdOverflow;
      fin_reason = ReasonNone;
    end
  end

  hotline_job_closer u_closer (
    .clk_i,
    .rst_ni,
    .abort_i,
    .fin_valid_i         (fin_valid),
    .fin_ready_o         (fin_ready),
    .fin_operation_i     (job_q.operation),
    .fin_status_i        (fin_status),
    .fin_reason_i        (fin_reason),
    .fin_epoch_i         (epoch_next),
    .fin_samples_i       (is_fragment ? cnt_samples : '0),
    .fin_popular_i       (is_fragment ? cnt_popular : '0),
    .fin_cold_rows_i     (is_fragment || is_load ? cnt_rows : '0),
    .fin_pinned_lookups_i(is_clear || is_dump ? '0 : cnt_pinned),
    .fin_eal_lookups_i   (is_clear || is_dump ? '0 : cnt_eal),
    .fin_lookups_i       (is_clear ? '0 : cnt_lookups),
    .fin_stalls_i        (stalls_q),
    .fin_error_sample_i  (evt_sample),
    .fin_error_lookup_i  (evt_lookup),
    .fin_error_value_i   (evt_value),
    .mark_valid_o        (mark_valid),
    .mark_ready_i        (mark_ready),
    .acked_valid_i       (acked_valid),
    .acked_ready_o       (acked_ready),
    .acked_error_i       (acked_error),
    .acked_addr_i        (acked_addr),
    .res_valid_o,
    .res_ready_i,
    .res_status_o,
    .res_reason_o,
    .res_epoch_o,
    .res_samples_o,
    .res_popular_o,
    .res_cold_rows_o,
    .res_pinned_lookups_o,
    .res_eal_lookups_o,
    .res_cold_lookups_o,
    .res_lookups_o,
    .res_stalls_o,
    .res_error_sample_o,
    .res_error_lookup_o,
    .res_error_value_o,
    .idle_o              (closer_idle)
  );

  assign idle_o = state_q == StIdle && !nxt_valid && job_ready_o && read_idle && write_idle
                  && closer_idle && eal_idle && trk_idle;

  // ------------------------------------------------------------------------------------ statistics
  assign stat_busy_o          = state_q != StIdle;
  assign stat_stall_read_o    = stall_read;
  assign stat_stall_write_o   = stall_write;
  assign stat_stall_tracker_o = stall_tracker;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || hand_on) begin
      stalls_q <= '0;
    end else begin
      stalls_q <= stalls_q + 32'(stall_read || stall_write || stat_stall_bank_o || stall_tracker);
    end
  end

endmodule
