// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Makes the stream of sample lengths of a FRAGMENT job, from a constant or from `offsets`.
///
/// A record of `len_*` is one sample, or closes the stream: after the last sample, at the first
/// entry that breaks the contract, or at a beat that could not be read.
///
///   offsets, bags = 2   0 | 3 5 | 5 5 | 9 8        (entries 0 ... 6; the last one is wrong)
///   len_*               5 | 0 | Bad                 reason OFFSET, sample 2, lookup 6, value 8
///
/// Every entry is checked (entry 0 is 0, never less than the one before, never above `lookups`, the
/// last one is `lookups`); every `bags`-th one closes a sample.
///
///   off_* -> [a: beat] -> [b: beat, faults] -> walk -> [w: edge] -> [length, limit] -> FIFO -> len_*
///
/// Throughput  One record per cycle, as long as each bus word of offsets closes one sample at least;
///             else one bus word per cycle.
/// Latency     5 cycles from an offsets beat to the first length; 2 from `start_i` with a constant.
/// Stalls      By `len_ready_i`.
/// Errors      See above. The detail of a Bad or Failed record is on `bad_*` from the cycle in which
///             the record is offered until the next `start_i`.
/// Stop        `stop_i` (level) drops the job and all records, also one that is offered. The user stops
///             every job at its end, and pops what is left of its offsets himself.
/// Reset       Drops the job.
module hotline_sample_lengths import hotline_pkg::*, hotline_fragment_pkg::*; #(
  /// Width of the data bus.
  parameter int unsigned BusBits    = 64,
  /// Most lookups of a sample.
  parameter int unsigned LookupsMax = 64,
  localparam int unsigned LengthBits = $clog2(LookupsMax + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  /// A pulse while idle; the arguments stay until the job is stopped.
  input  logic                  start_i,
  input  logic                  stop_i,
  input  logic                  jagged_i,
  input  logic [31:0]           samples_i,
  input  logic [31:0]           lookups_i,
  input  logic [LengthBits-1:0] lookups_per_sample_i,
  input  logic [15:0]           bags_i,
  /// samples * bags + 1.
  input  logic [31:0]           entries_i,

  /// Beats of `offsets`.
  input  logic                  off_valid_i,
  output logic                  off_ready_o,
  input  logic [BusBits-1:0]    off_data_i,
  input  logic                  off_error_i,
  input  logic [63:0]           off_addr_i,

  output logic                  len_valid_o,
  input  logic                  len_ready_i,
  output length_e               len_kind_o,
  output logic [LengthBits-1:0] len_length_o,

  output reason_e               bad_reason_o,
  output logic [31:0]           bad_sample_o,
  output logic [31:0]           bad_lookup_o,
  output logic [63:0]           bad_value_o
);

  localparam int unsigned Lanes    = BusBits / 32;
  localparam int unsigned LaneBits = $clog2(Lanes);
  localparam int unsigned CountBits = LaneBits + 1;

  typedef enum logic [1:0] {
    StIdle,   // no job, or a job whose stream is closed
    StFixed,  // records of constant length
    StJagged  // records from offsets
  } state_e;

  state_e state_q;

  // ------------------------------------------------------------------------- a: the beat as read
  logic                       a_valid_q, a_first_q, a_final_q, a_error_q;
  logic [Lanes-1:0][31:0]     a_data_q;
  logic [63:0]                a_addr_q;
  logic [CountBits-1:0]       a_count_q;
  logic [31:0]                left_q;       // entries behind those in stage a
  logic                       first_q;      // the next beat holds entry 0
  logic                       a_load, b_load;

  assign off_ready_o = state_q == StJagged && left_q != '0 && !stop_i && (!a_valid_q || b_load);
  assign a_load      = off_valid_i && off_ready_o;

  always_ff @(posedge clk_i) begin
    if (a_load) begin
      a_data_q  <= off_data_i;
      a_error_q <= off_error_i;
      a_addr_q  <= off_addr_i;
      a_first_q <= first_q;
      a_final_q <= left_q <= 32'(Lanes);
      a_count_q <= left_q <= 32'(Lanes) ? CountBits'(left_q) : CountBits'(Lanes);
    end
  end

  // ------------------------------------------------------------------ b: the beat and its faults
  logic                       b_valid_q, b_final_q, b_error_q;
  logic [Lanes-1:0][31:0]     b_data_q;
  logic [Lanes-1:0]           b_fault_q, a_fault;
  logic [63:0]                b_addr_q;
  logic [CountBits-1:0]       b_count_q;
  logic [31:0]                previous_q;   // last entry of the beat before that in stage a
  logic                       b_done;       // the walk leaves the beat

  assign b_load = a_valid_q && (!b_valid_q || b_done);

  always_comb begin
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      a_fault[lane] = 1'b0;
      if (CountBits'(lane) < a_count_q) begin
        if (lane == 0) begin
          a_fault[lane] = a_first_q ? a_data_q[lane] != '0 : a_data_q[lane] < previous_q;
        end else begin
          a_fault[lane] = a_data_q[lane] < a_data_q[lane-1];
        end
        if (a_data_q[lane] > lookups_i) begin
          a_fault[lane] = 1'b1;
        end
        if (a_final_q && CountBits'(lane + 1) == a_count_q && a_data_q[lane] != lookups_i) begin
          a_fault[lane] = 1'b1;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (b_load) begin
      b_data_q   <= a_data_q;
      b_fault_q  <= a_fault;
      b_error_q  <= a_error_q;
      b_addr_q   <= a_addr_q;
      b_count_q  <= a_count_q;
      b_final_q  <= a_final_q;
      previous_q <= a_data_q[Lanes-1];
    end
  end

  // -------------------------------------------------------------- walk: to the next sample's edge
  logic [LaneBits-1:0]  lane_q;        // first entry of the beat that was not walked over
  logic [15:0]          to_edge_q;     // entries up to the next edge, that one included
  logic                 zeroth_q;      // the next edge is entry 0, which closes no sample
  logic                 halted_q;      // the stream is closed as far as the walk knows
  logic                 finish_q;      // the last edge was found
  logic [31:0]          entry_q;       // number of the beat's first entry
  logic [CountBits-1:0] available, span, fault_lane;
  logic                 at_edge, any_fault, walk, w_load, w_ready, beat_left;
  logic [CountBits-1:0] walk_end;
  logic [Lanes-1:0]     walked, faults;
  logic [LaneBits-1:0]  edge_lane;

  always_comb begin
    available = b_count_q - {1'b0, lane_q};
    at_edge   = to_edge_q <= 16'(available);
    span      = at_edge ? CountBits'(to_edge_q) : available;
    walk_end  = {1'b0, lane_q} + span;
    edge_lane = LaneBits'(walk_end - 1'b1);
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      walked[lane] = CountBits'(lane) >= {1'b0, lane_q} && CountBits'(lane) < walk_end;
    end
    faults     = b_fault_q & walked;
    any_fault  = faults != '0;
    fault_lane = '0;
    for (int unsigned lane = Lanes; lane > 0; lane--) begin
      if (faults[lane-1]) begin
        fault_lane = CountBits'(lane - 1);
      end
    end
  end

  assign walk      = state_q == StJagged && b_valid_q && !halted_q && !finish_q && w_ready;
  assign beat_left = walk_end == b_count_q;
  assign b_done    = walk && beat_left && !b_error_q && !any_fault;

  // ------------------------------------------------------------------------- w: an edge or an end
  logic        w_valid_q, w_final;
  length_e     w_kind_q;
  logic [31:0] w_value_q;     // the edge, or the entry at fault
  logic [31:0] w_entry_q;     // number of the entry at fault
  logic [63:0] w_addr_q;

  assign w_load = walk && (b_error_q || any_fault || (at_edge && !zeroth_q));

  always_ff @(posedge clk_i) begin
    if (w_ready) begin
      w_value_q <= any_fault ? b_data_q[LaneBits'(fault_lane)] : b_data_q[edge_lane];
      w_entry_q <= entry_q + 32'(fault_lane);
      w_addr_q  <= b_addr_q;
      if (b_error_q && b_valid_q && !finish_q) begin
        w_kind_q <= LengthFailed;
      end else if (any_fault && !finish_q) begin
        w_kind_q <= LengthBad;
      end else begin
        w_kind_q <= finish_q ? LengthEnd : LengthSample;
      end
    end
  end

  // ------------------------------------------------------------- the length, and the FIFO's input
  logic                  fifo_valid, fifo_ready, closed_q, push;
  length_e               fifo_kind;
  logic [LengthBits-1:0] fifo_length;
  logic [31:0]           edge_q;      // edge of the sample before
  logic [31:0]           sample_q;    // number of the sample
  logic [31:0]           length;
  logic                  too_long, fixed_end;

  assign length    = w_value_q - edge_q;
  assign too_long  = length > LookupsMax;
  assign fixed_end = sample_q == samples_i;
  assign w_ready   = !w_valid_q || (fifo_ready && !closed_q);
  assign w_final   = walk && beat_left && b_final_q && !b_error_q && !any_fault;

  always_comb begin
    fifo_valid  = 1'b0;
    fifo_kind   = LengthSample;
    fifo_length = lookups_per_sample_i;
    unique case (state_q)
      StFixed: begin
        fifo_valid = !closed_q;
        fifo_kind  = fixed_end ? LengthEnd : LengthSample;
      end
      StJagged: begin
        fifo_valid  = w_valid_q && !closed_q;
        fifo_kind   = w_kind_q == LengthSample && too_long ? LengthBad : w_kind_q;
        fifo_length = LengthBits'(length);
      end
      default: ;
    endcase
  end

  assign push = fifo_valid && fifo_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || stop_i) begin
      state_q   <= StIdle;
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      left_q    <= '0;
      first_q   <= 1'b0;
      zeroth_q  <= 1'b0;
      halted_q  <= 1'b0;
      finish_q  <= 1'b0;
      closed_q  <= 1'b0;
      lane_q    <= '0;
      to_edge_q <= '0;
      entry_q   <= '0;
      edge_q    <= '0;
      sample_q  <= '0;
    end else if (start_i) begin
      state_q   <= jagged_i ? StJagged : StFixed;
      left_q    <= entries_i;
      first_q   <= 1'b1;
      zeroth_q  <= 1'b1;
      to_edge_q <= 16'd1;
    end else begin
      // Beats into the stages.
      if (a_load) begin
        left_q  <= left_q - (left_q <= 32'(Lanes) ? left_q : 32'(Lanes));
        first_q <= 1'b0;
      end
      a_valid_q <= a_load || (a_valid_q && !b_load);
      b_valid_q <= b_load || (b_valid_q && !b_done);

      // The walk.
      if (walk) begin
        if (b_error_q || any_fault) begin
          halted_q <= 1'b1;
        end else begin
          lane_q    <= beat_left ? '0 : LaneBits'(walk_end);
          to_edge_q <= at_edge ? bags_i : to_edge_q - 16'(available);
          if (at_edge) begin
            zeroth_q <= 1'b0;
          end
          if (beat_left) begin
            entry_q <= entry_q + 32'(Lanes);
          end
          if (w_final) begin
            finish_q <= 1'b1;
          end
        end
      end
      if (w_ready) begin
        w_valid_q <= w_load || (finish_q && !halted_q);
        if (finish_q) begin
          halted_q <= 1'b1;
        end
      end

      // Records.
      if (push) begin
        if (fifo_kind == LengthSample) begin
          sample_q <= sample_q + 1'b1;
          edge_q   <= w_value_q;
        end else begin
          closed_q <= 1'b1;
        end
      end
    end
  end

  // Where and what; loaded with the record that closes the stream.
  always_ff @(posedge clk_i) begin
    if (push && fifo_kind != LengthSample) begin
      bad_sample_o <= sample_q;
      bad_lookup_o <= w_entry_q;
      bad_value_o  <= {32'd0, w_value_q};
      bad_reason_o <= ReasonOffset;
      if (w_kind_q == LengthSample) begin
        bad_reason_o <= ReasonSampleTooLong;
        bad_lookup_o <= edge_q;
        bad_value_o  <= {32'd0, length};
      end
      if (w_kind_q == LengthFailed) begin
        bad_value_o <= w_addr_q;
      end
    end
  end

  logic [1:0] out_kind;
  assign len_kind_o = length_e'(out_kind);

  hotline_stream_fifo #(
    .Width(LengthBits + 2),
    .Depth(8)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .flush_i    (stop_i),
    .in_valid_i (fifo_valid),
    .in_ready_o (fifo_ready),
    .in_data_i  ({2'(fifo_kind), fifo_length}),
    .out_valid_o(len_valid_o),
    .out_ready_i(len_ready_i),
    .out_data_o ({out_kind, len_length_o}),
    .count_o    ()
  );

`ifndef SYNTHESIS
  a_start_idle : assert property (@(posedge clk_i) disable iff (!rst_ni)
      start_i |-> state_q == StIdle && !len_valid_o);
`endif

endmodule
