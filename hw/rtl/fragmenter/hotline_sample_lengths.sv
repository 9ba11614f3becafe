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
///   off_* -> [a: beat] -> [b: beat, first fault] -> walk -> [w: edge] -> [l: length] -> FIFO -> len_*
///
/// Throughput  One record per cycle, as long as each bus word of offsets closes one sample at least;
///             else one bus word per cycle.
/// Latency     6 cycles from an offsets beat to the first length; 2 from `start_i` with a constant.
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
  logic                       a_load, a_leave, s_ready;

  assign off_ready_o = state_q == StJagged && left_q != '0 && !stop_i && (!a_valid_q || s_ready);
  assign a_load      = off_valid_i && off_ready_o;
  assign a_leave     = a_valid_q && s_ready;

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
  // Only the first fault of a beat can matter: the walk ends there.
  logic                       b_valid, b_final, b_error, b_any_fault, a_any_fault;
  logic [Lanes-1:0][31:0]     b_data;
  logic [Lanes-1:0]           a_fault;
  logic [LaneBits-1:0]        b_fault_lane, a_fault_lane;
  logic [63:0]                b_addr;
  logic [CountBits-1:0]       b_count;
  logic [31:0]                previous_q;   // last entry of the beat before that in stage a
  logic                       b_done;       // the walk leaves the beat

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
    a_any_fault  = a_fault != '0;
    a_fault_lane = '0;
    for (int unsigned lane = Lanes; lane > 0; lane--) begin
      if (a_fault[lane-1]) begin
        a_fault_lane = LaneBits'(lane - 1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (a_leave) begin
      previous_q <= a_data_q[Lanes-1];
    end
  end

  // Its ready is a register: what the walk decides in a cycle does not reach the read engine.
  hotline_spill_register #(
    .Width(BusBits + 64 + CountBits + LaneBits + 3)
  ) u_beat (
    .clk_i,
    .rst_ni     (rst_ni && !stop_i),
    .in_valid_i (a_valid_q),
    .in_ready_o (s_ready),
    .in_data_i  ({a_data_q, a_addr_q, a_count_q, a_fault_lane, a_any_fault, a_final_q, a_error_q}),
    .out_valid_o(b_valid),
    .out_ready_i(b_done),
    .out_data_o ({b_data, b_addr, b_count, b_fault_lane, b_any_fault, b_final, b_error})
  );

  // -------------------------------------------------------------- walk: to the next sample's edge
  // `edge_q` lanes into the beat lies the end of the next edge (1: lane 0); beyond `b_count` it
  // is in a later beat.
  localparam int unsigned EdgeBits = 17;

  logic [EdgeBits-1:0]  edge_at_q, edge_next;
  logic                 zeroth_q;      // the next edge is entry 0, which closes no sample
  logic                 halted_q;      // the stream is closed as far as the walk knows
  logic                 finish_q;      // the last edge was found
  logic [31:0]          entry_q;       // number of the beat's first entry
  logic                 at_edge, beat_left, fault_here, walk, w_load, w_ready;
  logic [CountBits-1:0] walk_end;
  logic [Lanes-1:0][31:0] rotated;     // lane i - 1 at place i: the edge's entry by its end

  assign at_edge    = edge_at_q <= EdgeBits'(b_count);
  assign walk_end   = at_edge ? CountBits'(edge_at_q) : b_count;
  assign beat_left  = !at_edge || edge_at_q == EdgeBits'(b_count);
  assign fault_here = b_any_fault && {1'b0, b_fault_lane} < walk_end;
  assign walk       = state_q == StJagged && b_valid && !halted_q && !finish_q && w_ready;
  // A fault halts the walk one cycle later; what it does until then is not seen any more.
  assign b_done     = walk && beat_left;

  always_comb begin
    edge_next = at_edge ? edge_at_q + EdgeBits'(bags_i) : edge_at_q;
    if (beat_left) begin
      edge_next = at_edge ? edge_at_q + EdgeBits'(bags_i) - EdgeBits'(Lanes)
                          : edge_at_q - EdgeBits'(Lanes);
    end
    for (int unsigned place = 0; place < Lanes; place++) begin
      rotated[place] = b_data[(place+Lanes-1)%Lanes];
    end
  end

  // ------------------------------------------------------------------- w: an edge, or the end
  logic        w_valid_q, w_error_q, w_fault_q, w_end_q;
  logic [31:0] w_edge_q;      // the edge
  logic [31:0] w_value_q;     // the entry at fault
  logic [31:0] w_entry_q;     // and its number
  logic [63:0] w_addr_q;

  assign w_load = walk && (b_error || fault_here || (at_edge && !zeroth_q));

  always_ff @(posedge clk_i) begin
    if (w_ready) begin
      w_edge_q  <= rotated[edge_at_q[LaneBits-1:0]];
      w_value_q <= b_data[b_fault_lane];
      w_entry_q <= {entry_q[31:LaneBits], b_fault_lane};
      w_addr_q  <= b_addr;
      w_error_q <= b_error && !finish_q;
      w_fault_q <= fault_here && !finish_q;
      w_end_q   <= finish_q;
    end
  end

  // ------------------------------------------------------------------------------- l: the length
  logic        l_valid_q, l_ready;
  length_e     l_kind_q;
  logic [31:0] l_length_q, l_first_q, l_value_q, l_entry_q;
  logic [63:0] l_addr_q;
  logic [31:0] edge_q;        // edge of the sample before that in w

  assign w_ready = !w_valid_q || l_ready;

  always_ff @(posedge clk_i) begin
    if (l_ready) begin
      l_length_q <= w_edge_q - edge_q;
      l_first_q  <= edge_q;
      l_value_q  <= w_value_q;
      l_entry_q  <= w_entry_q;
      l_addr_q   <= w_addr_q;
      if (w_error_q) begin
        l_kind_q <= LengthFailed;
      end else if (w_fault_q) begin
        l_kind_q <= LengthBad;
      end else begin
        l_kind_q <= w_end_q ? LengthEnd : LengthSample;
      end
    end
  end

  // ------------------------------------------------------------------------------ the FIFO's input
  logic                  fifo_valid, fifo_ready, closed_q, push;
  length_e               fifo_kind;
  logic [LengthBits-1:0] fifo_length;
  logic [31:0]           sample_q;    // number of the sample
  logic                  too_long, fixed_end;

  assign too_long  = l_length_q > LookupsMax;
  assign fixed_end = sample_q == samples_i;
  // Behind the record that closes the stream everything is dropped.
  assign l_ready   = !l_valid_q || fifo_ready;

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
        fifo_valid  = l_valid_q && !closed_q;
        fifo_kind   = l_kind_q == LengthSample && too_long ? LengthBad : l_kind_q;
        fifo_length = LengthBits'(l_length_q);
      end
      default: ;
    endcase
  end

  assign push = fifo_valid && fifo_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || stop_i) begin
      state_q   <= StIdle;
      a_valid_q <= 1'b0;
      w_valid_q <= 1'b0;
      l_valid_q <= 1'b0;
      left_q    <= '0;
      first_q   <= 1'b0;
      zeroth_q  <= 1'b0;
      halted_q  <= 1'b0;
      finish_q  <= 1'b0;
      closed_q  <= 1'b0;
      edge_at_q <= '0;
      entry_q   <= '0;
      edge_q    <= '0;
      sample_q  <= '0;
    end else if (start_i) begin
      state_q   <= jagged_i ? StJagged : StFixed;
      left_q    <= entries_i;
      first_q   <= 1'b1;
      zeroth_q  <= 1'b1;
      edge_at_q <= EdgeBits'(1);
    end else begin
      // Beats into the stages.
      if (a_load) begin
        left_q  <= left_q <= 32'(Lanes) ? '0 : left_q - 32'(Lanes);
        first_q <= 1'b0;
      end
      a_valid_q <= a_load || (a_valid_q && !s_ready);

      // The walk.
      if (walk) begin
        halted_q  <= b_error || fault_here;
        edge_at_q <= edge_next;
        zeroth_q  <= zeroth_q && !at_edge;
        if (beat_left) begin
          entry_q  <= entry_q + 32'(Lanes);
          finish_q <= b_final;
        end
      end
      if (w_ready) begin
        w_valid_q <= w_load || (finish_q && !halted_q);
        if (finish_q) begin
          halted_q <= 1'b1;
        end
      end
      if (l_ready) begin
        l_valid_q <= w_valid_q;
        if (w_valid_q) begin
          edge_q <= w_edge_q;
        end
      end

      // Records.
      if (push) begin
        if (fifo_kind == LengthSample) begin
          sample_q <= sample_q + 1'b1;
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
      bad_lookup_o <= l_entry_q;
      bad_value_o  <= {32'd0, l_value_q};
      bad_reason_o <= ReasonOffset;
      if (l_kind_q == LengthSample) begin
        bad_reason_o <= ReasonSampleTooLong;
        bad_lookup_o <= l_first_q;
        bad_value_o  <= {32'd0, l_length_q};
      end
      if (l_kind_q == LengthFailed) begin
        bad_value_o <= l_addr_q;
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
