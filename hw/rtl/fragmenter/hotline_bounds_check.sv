// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Compares every row id of a slice with `total_rows`, and closes the list of what stops a job early.
///
///   slc_* -> [c: compare lanes] -> first bad lane -> [register] -> req_*
///
/// The lanes from the first bad row id on are masked off, and so is everything behind that slice up
/// to the terminal slice, which always passes. `stop_o` asks the splitter for it.
///
/// `evt_*_o` is what stopped the job before the EAL: a bad row id, else what the splitter says. It is
/// valid while the terminal slice is behind this block.
///
/// Throughput  One slice per cycle.
/// Latency     2 cycles.
/// Stalls      By `req_ready_i`.
/// Errors      Row id >= total_rows: BAD_INDEX, reason ROW_ID.
/// Reset       Drops what is inside.
module hotline_bounds_check import hotline_pkg::*; #(
  /// Width of the data bus.
  parameter int unsigned BusBits = 64,
  localparam int unsigned Lanes    = BusBits / 32,
  localparam int unsigned LaneBits = $clog2(Lanes)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  /// A pulse before the first slice of a job; the arguments stay until its terminal slice has left.
  input  logic                    start_i,
  input  logic                    fragment_i,
  input  logic                    entries_i,
  input  logic [31:0]             total_rows_i,
  output logic                    stop_o,

  input  logic                    slc_valid_i,
  output logic                    slc_ready_o,
  input  logic [BusBits-1:0]      slc_data_i,
  input  logic [Lanes-1:0]        slc_mask_i,
  input  logic                    slc_end_i,
  input  logic [LaneBits:0]       slc_end_lane_i,
  input  logic                    slc_terminal_i,

  input  status_e                 spl_status_i,
  input  reason_e                 spl_reason_i,
  input  logic [31:0]             spl_sample_i,
  input  logic [31:0]             spl_lookup_i,
  input  logic [63:0]             spl_value_i,

  output logic                    req_valid_o,
  input  logic                    req_ready_i,
  output logic [Lanes-1:0][31:0]  req_ids_o,
  output logic [Lanes-1:0]        req_mask_o,
  output logic [Lanes-1:0][1:0]   req_counters_o,
  output logic                    req_end_o,
  output logic [LaneBits:0]       req_end_lane_o,
  output logic                    req_terminal_o,

  output status_e                 evt_status_o,
  output reason_e                 evt_reason_o,
  output logic [31:0]             evt_sample_o,
  output logic [31:0]             evt_lookup_o,
  output logic [63:0]             evt_value_o
);

  // ------------------------------------------------------------------------------ c: comparison
  logic                   c_valid_q, c_end_q, c_terminal_q, c_ready;
  logic [Lanes-1:0][31:0] c_ids_q;
  logic [Lanes-1:0]       c_mask_q, c_bad_q;
  logic [LaneBits:0]      c_end_lane_q;
  logic                   out_ready;

  assign c_ready     = !c_valid_q || out_ready;
  assign slc_ready_o = c_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      c_valid_q <= 1'b0;
    end else if (c_ready) begin
      c_valid_q <= slc_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (c_ready) begin
      c_ids_q      <= slc_data_i;
      c_mask_q     <= slc_mask_i;
      c_end_q      <= slc_end_i;
      c_end_lane_q <= slc_end_lane_i;
      c_terminal_q <= slc_terminal_i;
      for (int unsigned lane = 0; lane < Lanes; lane++) begin
        c_bad_q[lane] <= slc_mask_i[lane] && slc_data_i[32*lane +: 32] >= total_rows_i;
      end
    end
  end

  // --------------------------------------------------------------------------- first bad lane
  logic                stopped_q, any_bad, leave, beat_done;
  logic [LaneBits-1:0] bad_lane;
  logic [Lanes-1:0]    good;
  logic                below;
  logic [31:0]         beat_q;        // number of the beat
  logic [31:0]         sample_q;      // number of the sample that the first lanes belong to
  logic [31:0]         bad_sample_q, bad_lookup_q, bad_value_q, bad_lookup;
  logic                bad_behind_q;  // the bad row id is behind the slice's end of a sample
  logic                keep;

  always_comb begin
    bad_lane = '0;
    for (int unsigned lane = Lanes; lane > 0; lane--) begin
      if (c_bad_q[lane-1]) begin
        bad_lane = LaneBits'(lane - 1);
      end
    end
    below = 1'b1;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      below      = below && !c_bad_q[lane];
      good[lane] = below;
    end
  end

  assign any_bad    = c_bad_q != '0;
  assign leave      = c_valid_q && out_ready;
  assign keep       = !stopped_q || c_terminal_q;
  assign beat_done  = c_mask_q[Lanes-1] || (entries_i && c_mask_q[Lanes-2]);
  assign bad_lookup = 32'({beat_q, bad_lane});
  assign stop_o     = stopped_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      stopped_q <= 1'b0;
      beat_q    <= '0;
      sample_q  <= '0;
    end else if (leave) begin
      beat_q   <= beat_q + 32'(beat_done);
      sample_q <= sample_q + 32'(c_end_q && fragment_i);
      if (any_bad) begin
        stopped_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (leave && any_bad && !stopped_q) begin
      bad_lookup_q <= entries_i ? bad_lookup >> 1 : bad_lookup;
      bad_value_q  <= c_ids_q[bad_lane];
      bad_sample_q <= sample_q;
      bad_behind_q <= c_end_q && {1'b0, bad_lane} >= c_end_lane_q;
    end
  end

  assign evt_status_o = stopped_q ? StatusBadIndex : spl_status_i;
  assign evt_reason_o = stopped_q ? ReasonRowId : spl_reason_i;
  assign evt_sample_o = stopped_q ? bad_sample_q + 32'(bad_behind_q) : spl_sample_i;
  assign evt_lookup_o = stopped_q ? bad_lookup_q : spl_lookup_i;
  assign evt_value_o  = stopped_q ? {32'd0, bad_value_q} : spl_value_i;

  // -------------------------------------------------------------------------------- to the EAL
  logic [Lanes-1:0]      out_mask;
  logic                  out_end;

  assign out_mask = keep ? c_mask_q & good : '0;
  assign out_end  = keep && c_end_q && !(any_bad && {1'b0, bad_lane} < c_end_lane_q);

  hotline_spill_register #(
    .Width(BusBits + Lanes + LaneBits + 3)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (c_valid_q && keep),
    .in_ready_o (out_ready),
    .in_data_i  ({c_ids_q, out_mask, out_end, c_end_lane_q, c_terminal_q}),
    .out_valid_o(req_valid_o),
    .out_ready_i(req_ready_i),
    .out_data_o ({req_ids_o, req_mask_o, req_end_o, req_end_lane_o, req_terminal_o})
  );

  always_comb begin
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      // An entry's second word is slot | counter << 30; a plain list has no counters.
      req_counters_o[lane] = entries_i && lane % 2 == 0 ? req_ids_o[(lane+1)%Lanes][31:30]
                                                        : CounterInsert;
    end
  end

endmodule
