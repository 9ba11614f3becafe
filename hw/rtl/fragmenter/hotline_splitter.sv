// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Cuts the beats of row ids into *slices*, and ends every job with exactly one terminal slice.
///
/// A slice is lookups of one beat, in their lanes, of at most two samples: those up to lane
/// `end_lane` belong to the sample that ends there (if `end` is set), those from there on to the
/// next one. A sample without lookups is the end of a slice, which may be one without lanes.
///
///   ids beats (8 lanes)   a0 a1 a2 b0 b1 b2 b3 b4 | b5 c0 d0 d1 d2 d3 d4 d5 |     a: 3, b: 6, c: 1
///   slices                a0 a1 a2/b0 b1 b2 b3 b4 | b5/
///                                                 |    c0/d0 d1 d2 d3 d4 d5 |     / : end
///
/// LEARN, LOAD and EVICT have no samples: a slice is a beat; the lookups of a LOAD of 8-byte entries
/// are in the even lanes.
///
/// The terminal slice has no lanes. It follows the last slice, or stands where the first event
/// happened: a bad record of `len_*`, a beat that could not be read, `abort_i`, `stop_i` (something
/// downstream ended the job). Then the splitter drains the streams of the job (`drain_o`: the reader
/// cancels them) and is idle again.
///
/// Throughput  One slice per cycle; one beat per cycle where no beat holds two ends.
/// Latency     2 cycles from an ids beat to its slice.
/// Stalls      By `slc_ready_i`, `len_*` and `ids_*`.
/// Errors      `evt_*` says why the job ended, from the cycle after the terminal slice was made until
///             the next job's.
/// Reset       Drops the job.
module hotline_splitter import hotline_pkg::*, hotline_fragment_pkg::*; #(
  /// Width of the data bus.
  parameter int unsigned BusBits    = 64,
  /// Most lookups of a sample.
  parameter int unsigned LookupsMax = 64,
  localparam int unsigned Lanes      = BusBits / 32,
  localparam int unsigned LaneBits   = $clog2(Lanes),
  localparam int unsigned LengthBits = $clog2(LookupsMax + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  /// A pulse while idle; the arguments stay until it is idle again.
  input  logic                  start_i,
  output logic                  idle_o,
  /// FRAGMENT: slices by samples. Else one slice per beat.
  input  logic                  fragment_i,
  /// LOAD of 8-byte entries.
  input  logic                  entries_i,
  input  logic [31:0]           lookups_i,

  input  logic                  abort_i,
  input  logic                  stop_i,

  /// The rest of the job's streams is not needed; `*_pending_i`: beats of the job are to come.
  output logic                  drain_o,
  input  logic                  ids_pending_i,
  input  logic                  off_pending_i,

  input  logic                  len_valid_i,
  output logic                  len_ready_o,
  input  length_e               len_kind_i,
  input  logic [LengthBits-1:0] len_length_i,
  input  reason_e               bad_reason_i,
  input  logic [31:0]           bad_sample_i,
  input  logic [31:0]           bad_lookup_i,
  input  logic [63:0]           bad_value_i,

  input  logic                  ids_valid_i,
  output logic                  ids_ready_o,
  input  logic [BusBits-1:0]    ids_data_i,
  input  logic                  ids_error_i,
  input  logic [63:0]           ids_addr_i,
  input  logic                  ids_last_i,

  output logic                  slc_valid_o,
  input  logic                  slc_ready_i,
  output logic [BusBits-1:0]    slc_data_o,
  output logic [Lanes-1:0]      slc_mask_o,
  /// A sample ends before lane `end_lane` (0 ... Lanes).
  output logic                  slc_end_o,
  output logic [LaneBits:0]     slc_end_lane_o,
  output logic                  slc_terminal_o,

  output status_e               evt_status_o,
  output reason_e               evt_reason_o,
  output logic [31:0]           evt_sample_o,
  output logic [31:0]           evt_lookup_o,
  output logic [63:0]           evt_value_o,

  /// Waits for a beat or a length.
  output logic                  stall_o
);

  // Wide enough for a length and for a number of lanes.
  localparam int unsigned RestBits = LengthBits > LaneBits + 1 ? LengthBits : LaneBits + 1;

  if (BusBits < 64 || (BusBits & (BusBits - 1)) != 0) begin : gen_bad_bus
    $fatal(1, "%m: BusBits must be a power of two of at least 64");
  end

  typedef enum logic [1:0] {
    StIdle,      // no job
    StFragment,  // slices by samples
    StFlat,      // a slice per beat
    StDrain      // pops what is left of the job's streams
  } state_e;

  state_e state_q, state_d;

  // The sample that is being cut: `rest` lookups are left of it.
  logic                cut_q, cut_d;
  logic [RestBits-1:0] rest_q, rest_d;
  logic [LaneBits-1:0] lane_q, lane_d;      // first lane of the beat that is not yet cut
  logic [LaneBits:0]   tail_q;              // lanes of the last beat

  // ------------------------------------------------------------------------------ what is there
  logic              beat_usable, beat_failed;
  logic [LaneBits:0] beat_lanes, available;

  assign beat_usable = ids_valid_i && !ids_error_i;
  assign beat_failed = ids_valid_i && ids_error_i;
  assign beat_lanes  = ids_last_i ? tail_q : (LaneBits + 1)'(Lanes);
  assign available   = beat_usable ? beat_lanes - {1'b0, lane_q} : '0;

  // ---------------------------------------------------------------------------------- the slice
  logic              out_valid, out_ready, out_end, out_terminal, ends, next_fits, beat_done;
  logic [LaneBits:0] end_lane, stop_lane, behind;
  logic [Lanes-1:0]  out_mask;
  status_e           evt_status;
  reason_e           evt_reason;
  logic              evt_detail, evt_address, len_is_sample;

  assign len_is_sample = len_valid_i && len_kind_i == LengthSample;
  assign ends          = rest_q <= RestBits'(available);
  assign end_lane      = ends ? {1'b0, lane_q} + (LaneBits + 1)'(rest_q) : {1'b0, lane_q};
  // Lanes behind the end; the next sample may use them if it does not end among them.
  assign behind        = available - (LaneBits + 1)'(rest_q);
  assign next_fits     = len_is_sample && behind != '0
                         && RestBits'(len_length_i) > RestBits'(behind);

  always_comb begin
    state_d      = state_q;
    cut_d        = cut_q;
    rest_d       = rest_q;
    lane_d       = lane_q;
    out_valid    = 1'b0;
    out_end      = 1'b0;
    out_terminal = 1'b0;
    out_mask     = '0;
    stop_lane    = {1'b0, lane_q};
    beat_done    = 1'b0;
    len_ready_o  = 1'b0;
    ids_ready_o  = 1'b0;
    evt_status   = StatusOk;
    evt_reason   = ReasonNone;
    evt_detail   = 1'b0;
    evt_address  = 1'b0;
    stall_o      = 1'b0;

    unique case (state_q)
      StIdle: begin
        cut_d  = 1'b0;
        lane_d = '0;
        if (start_i) begin
          state_d = fragment_i ? StFragment : StFlat;
        end
      end

      StFragment: begin
        if (abort_i || stop_i) begin
          out_terminal = 1'b1;
          evt_status   = StatusAborted;
        end else if (!cut_q) begin
          // Between two samples: what comes next?
          stall_o = !len_valid_i;
          if (len_is_sample) begin
            len_ready_o = 1'b1;
            cut_d       = 1'b1;
            rest_d      = RestBits'(len_length_i);
          end else if (len_valid_i) begin
            out_terminal = 1'b1;
            unique case (len_kind_i)
              LengthBad: begin
                evt_status = StatusBadIndex;
                evt_reason = bad_reason_i;
                evt_detail = 1'b1;
              end
              LengthFailed: begin
                evt_status = StatusAxiError;
                evt_reason = ReasonRead;
                evt_detail = 1'b1;
              end
              default: ;
            endcase
          end
        end else if (rest_q != '0 && beat_failed) begin
          out_terminal = 1'b1;
          evt_status   = StatusAxiError;
          evt_reason   = ReasonRead;
          evt_address  = 1'b1;
        end else if (ends) begin
          out_valid = 1'b1;
          out_end   = 1'b1;
          stop_lane = next_fits ? beat_lanes : end_lane;
          if (out_ready) begin
            cut_d       = len_is_sample;
            len_ready_o = 1'b1;
            rest_d      = RestBits'(len_length_i) - (next_fits ? RestBits'(behind) : '0);
          end
        end else if (beat_usable) begin
          out_valid = 1'b1;
          stop_lane = beat_lanes;
          if (out_ready) begin
            rest_d = rest_q - RestBits'(available);
          end
        end else begin
          stall_o = 1'b1;
        end
        // Only samples are taken from the stream of lengths; whatever else stays at its head.
        if (!len_is_sample) begin
          len_ready_o = 1'b0;
        end
        beat_done = out_valid && beat_usable && stop_lane == beat_lanes;
      end

      StFlat: begin
        if (abort_i || stop_i) begin
          out_terminal = 1'b1;
          evt_status   = StatusAborted;
        end else if (!ids_pending_i) begin
          out_terminal = 1'b1;
        end else if (beat_failed) begin
          out_terminal = 1'b1;
          evt_status   = StatusAxiError;
          evt_reason   = ReasonRead;
          evt_address  = 1'b1;
        end else if (beat_usable) begin
          out_valid = 1'b1;
          stop_lane = beat_lanes;
          beat_done = 1'b1;
        end else begin
          stall_o = 1'b1;
        end
      end

      StDrain: begin
        if (!ids_pending_i && !off_pending_i) begin
          state_d = StIdle;
        end
      end

      default: ;
    endcase

    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      out_mask[lane] = (LaneBits + 1)'(lane) >= {1'b0, lane_q}
                       && (LaneBits + 1)'(lane) < stop_lane
                       && !(entries_i && lane % 2 == 1);
    end
    if (out_terminal) begin
      out_valid = 1'b1;
      out_mask  = '0;
      if (out_ready) begin
        state_d = StDrain;
      end
    end else if (out_valid && out_ready) begin
      ids_ready_o = beat_done;
      lane_d      = beat_done ? '0 : LaneBits'(stop_lane);
    end
  end

  assign idle_o  = state_q == StIdle;
  assign drain_o = state_q == StDrain;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      state_q <= state_d;
    end
  end

  always_ff @(posedge clk_i) begin
    cut_q  <= cut_d;
    rest_q <= rest_d;
    lane_q <= lane_d;
    // Lanes of the last beat: 1 ... Lanes.
    if (entries_i) begin
      tail_q <= {LaneBits'(lookups_i << 1) == '0, LaneBits'(lookups_i << 1)};
    end else begin
      tail_q <= {LaneBits'(lookups_i) == '0, LaneBits'(lookups_i)};
    end
    if (out_terminal && out_ready) begin
      evt_status_o <= evt_status;
      evt_reason_o <= evt_reason;
      evt_sample_o <= evt_detail && evt_status == StatusBadIndex ? bad_sample_i : '0;
      evt_lookup_o <= evt_detail && evt_status == StatusBadIndex ? bad_lookup_i : '0;
      evt_value_o  <= evt_detail ? bad_value_i : evt_address ? ids_addr_i : '0;
    end
  end

  // What the next slice is may still change while the register is full (a length arrives, an abort),
  // so nothing is offered to it before it is free.
  hotline_spill_register #(
    .Width(BusBits + Lanes + LaneBits + 3)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (out_valid && out_ready),
    .in_ready_o (out_ready),
    .in_data_i  ({ids_data_i, out_mask, out_end, end_lane, out_terminal}),
    .out_valid_o(slc_valid_o),
    .out_ready_i(slc_ready_i),
    .out_data_o ({slc_data_o, slc_mask_o, slc_end_o, slc_end_lane_o, slc_terminal_o})
  );

endmodule
