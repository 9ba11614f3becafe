// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Gathers the marked lanes of a slice into bundles of up to `ColdLanes` lookups, in lane order.
///
///   slc_mask   . x . . x x . x      ColdLanes = 2, marked lanes 1 4 5 7
///   bun_*      {1, 4} | {5, 7}      bun_mask 11 | 11, bun_last 0 | 1
///
/// A bundle never holds lookups of two slices. A slice without a mark makes no bundle; do not offer it.
///
///   slc_* -> [rank of each marked lane] -> pick lanes of ranks k * ColdLanes ... -> [register] -> bun_*
///
/// Throughput  One bundle per cycle.
/// Latency     2 cycles.
/// Stalls      `slc_ready_o` is low while bundles of the slice before are left.
/// Errors      None.
/// Reset       Drops what is inside.
module hotline_cold_picker #(
  parameter int unsigned Lanes     = 2,
  /// Lookups of a bundle, a power of two, at most `Lanes`.
  parameter int unsigned ColdLanes = 1,
  localparam int unsigned LaneBits = Lanes > 1 ? $clog2(Lanes) : 1
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic                                slc_valid_i,
  output logic                                slc_ready_o,
  input  logic [Lanes-1:0]                    slc_mask_i,
  input  logic [Lanes-1:0][31:0]              slc_rows_i,

  output logic                                bun_valid_o,
  input  logic                                bun_ready_i,
  /// Never 0; ones from place 0 up.
  output logic [ColdLanes-1:0]                bun_mask_o,
  output logic [ColdLanes-1:0][31:0]          bun_rows_o,
  /// The lane that each lookup came from.
  output logic [ColdLanes-1:0][LaneBits-1:0]  bun_lanes_o,
  /// No further bundle of this slice.
  output logic                                bun_last_o
);

  localparam int unsigned RankBits = LaneBits + 1;

  if (ColdLanes < 1 || ColdLanes > Lanes || (ColdLanes & (ColdLanes - 1)) != 0) begin : gen_bad
    $fatal(1, "%m: ColdLanes must be a power of two, at most Lanes");
  end

  logic                            valid_q, out_ready, last;
  logic [Lanes-1:0]                mask_q;
  logic [Lanes-1:0][31:0]          rows_q;
  logic [Lanes-1:0][RankBits-1:0]  rank_d, rank_q;     // marked lanes below this one
  logic [RankBits-1:0]             total_d, total_q;
  logic [RankBits-1:0]             base_q;             // rank of the next bundle's first lookup

  always_comb begin
    total_d = '0;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      rank_d[lane] = total_d;
      total_d      = total_d + RankBits'(slc_mask_i[lane]);
    end
  end

  assign last        = total_q <= base_q + RankBits'(ColdLanes);
  assign slc_ready_o = !valid_q || (out_ready && last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else if (slc_ready_o) begin
      valid_q <= slc_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (slc_ready_o) begin
      mask_q  <= slc_mask_i;
      rows_q  <= slc_rows_i;
      rank_q  <= rank_d;
      total_q <= total_d;
      base_q  <= '0;
    end else if (out_ready) begin
      base_q  <= base_q + RankBits'(ColdLanes);
    end
  end

  logic [ColdLanes-1:0]               mask;
  logic [ColdLanes-1:0][31:0]         rows;
  logic [ColdLanes-1:0][LaneBits-1:0] lanes;

  always_comb begin
    mask  = '0;
    rows  = '0;
    lanes = '0;
    for (int unsigned place = 0; place < ColdLanes; place++) begin
      for (int unsigned lane = 0; lane < Lanes; lane++) begin
        // At most one lane has the rank: an OR of gated words is a multiplexer.
        if (mask_q[lane] && rank_q[lane] == base_q + RankBits'(place)) begin
          mask[place]  = 1'b1;
          rows[place]  = rows[place] | rows_q[lane];
          lanes[place] = lanes[place] | LaneBits'(lane);
        end
      end
    end
  end

  hotline_spill_register #(
    .Width(ColdLanes * (33 + LaneBits) + 1)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (valid_q),
    .in_ready_o (out_ready),
    .in_data_i  ({mask, rows, lanes, last}),
    .out_valid_o(bun_valid_o),
    .out_ready_i(bun_ready_i),
    .out_data_o ({bun_mask_o, bun_rows_o, bun_lanes_o, bun_last_o})
  );

endmodule
