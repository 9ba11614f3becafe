// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Test wrapper: the spill register and FIFOs of many depths side by side, the RAMs, the arbiter.
///
/// One build then tests them all. Stream n is the spill register for n = 0, else a FIFO; the
/// bench reads depth and kind of each from `depth_o` and `block_o`.
module hotline_small_blocks_wrap #(
  localparam int unsigned Streams   = 9,
  localparam int unsigned Width     = 40,
  localparam int unsigned RamDepth  = 11,
  localparam int unsigned Requests  = 5,
  localparam int unsigned AddrWidth = $clog2(RamDepth)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  // Streams.
  input  logic                          flush_i,
  input  logic [Streams-1:0]            in_valid_i,
  output logic [Streams-1:0]            in_ready_o,
  input  logic [Streams-1:0][Width-1:0] in_data_i,
  output logic [Streams-1:0]            out_valid_o,
  input  logic [Streams-1:0]            out_ready_i,
  output logic [Streams-1:0][Width-1:0] out_data_o,
  output logic [Streams-1:0][7:0]       count_o,
  output logic [Streams-1:0][7:0]       depth_o,
  output logic [Streams-1:0]            block_o,

  // RAMs: port a is the write port, port b the read port of the one-write one-read RAMs.
  input  logic                          a_en_i,
  input  logic                          a_we_i,
  input  logic [AddrWidth-1:0]          a_addr_i,
  input  logic [Width-1:0]              a_wdata_i,
  output logic [Width-1:0]              a_rdata_o,
  input  logic                          b_en_i,
  input  logic                          b_we_i,
  input  logic [AddrWidth-1:0]          b_addr_i,
  input  logic [Width-1:0]              b_wdata_i,
  output logic [Width-1:0]              b_rdata_o,
  output logic [Width-1:0]              simple_rdata_o,
  output logic [Width-1:0]              lut_rdata_o,

  // Arbiter.
  input  logic [Requests-1:0]           req_i,
  input  logic                          advance_i,
  output logic [Requests-1:0]           grant_o,
  output logic [2:0]                    index_o,
  output logic                          single_grant_o,
  output logic                          single_index_o
);

  hotline_spill_register #(
    .Width(Width)
  ) u_spill (
    .clk_i,
    .rst_ni,
    .in_valid_i (in_valid_i[0]),
    .in_ready_o (in_ready_o[0]),
    .in_data_i  (in_data_i[0]),
    .out_valid_o(out_valid_o[0]),
    .out_ready_i(out_ready_i[0]),
    .out_data_o (out_data_o[0])
  );
  assign count_o[0] = '0;
  assign depth_o[0] = 8'd2;
  assign block_o[0] = 1'b0;

  // The first of the list is stream 1.
  localparam int unsigned Depths[Streams-1] = '{1, 2, 3, 16, 1, 2, 3, 70};
  localparam bit          Blocks[Streams-1] = '{0, 0, 0, 0, 1, 1, 1, 1};

  for (genvar s = 1; s < int'(Streams); s++) begin : gen_fifo
    localparam int unsigned Depth = Depths[s-1];
    logic [$clog2(Depth+1)-1:0] count;

    hotline_stream_fifo #(
      .Width   (Width),
      .Depth   (Depth),
      .LutDepth(Blocks[s-1] ? 0 : 64),
      .LutBits (Blocks[s-1] ? 0 : 2048)
    ) u_fifo (
      .clk_i,
      .rst_ni,
      .flush_i,
      .in_valid_i (in_valid_i[s]),
      .in_ready_o (in_ready_o[s]),
      .in_data_i  (in_data_i[s]),
      .out_valid_o(out_valid_o[s]),
      .out_ready_i(out_ready_i[s]),
      .out_data_o (out_data_o[s]),
      .count_o    (count)
    );
    assign count_o[s] = 8'(count);
    assign depth_o[s] = 8'(Depth);
    assign block_o[s] = Blocks[s-1];
  end

  hotline_ram_2rw #(
    .Width(Width),
    .Depth(RamDepth)
  ) u_dual (
    .clk_i,
    .a_en_i,
    .a_we_i,
    .a_addr_i,
    .a_wdata_i,
    .a_rdata_o,
    .b_en_i,
    .b_we_i,
    .b_addr_i,
    .b_wdata_i,
    .b_rdata_o
  );

  hotline_ram_1r1w #(
    .Width(Width),
    .Depth(RamDepth)
  ) u_simple (
    .clk_i,
    .we_i   (a_en_i && a_we_i),
    .waddr_i(a_addr_i),
    .wdata_i(a_wdata_i),
    .re_i   (b_en_i),
    .raddr_i(b_addr_i),
    .rdata_o(simple_rdata_o)
  );

  hotline_ram_lutram #(
    .Width(Width),
    .Depth(RamDepth)
  ) u_lut (
    .clk_i,
    .we_i   (a_en_i && a_we_i),
    .waddr_i(a_addr_i),
    .wdata_i(a_wdata_i),
    .raddr_i(b_addr_i),
    .rdata_o(lut_rdata_o)
  );

  hotline_rr_arbiter #(
    .Count(Requests)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .req_i,
    .advance_i,
    .grant_o,
    .index_o
  );

  hotline_rr_arbiter #(
    .Count(1)
  ) u_single (
    .clk_i,
    .rst_ni,
    .req_i    (req_i[0]),
    .advance_i,
    .grant_o  (single_grant_o),
    .index_o  (single_index_o)
  );

endmodule
