// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// The fragmenter kernel under the port names that Vivado and Vitis look for.
///
/// Verilog-2001, since block designs take no SystemVerilog top.
///
///   ap_clk, ap_rst_n, interrupt   clock, reset (active low, sampled at the clock), level interrupt
///   s_axi_control_*               AXI4-Lite, 32 bits; docs/register_map.md
///   m_axi_gmem_*                  AXI4 master: 64-bit addresses, id 0, INCR, size of the bus
///
/// Throughput, latency, stalls, errors, reset: those of hotline_fragmenter_kernel.
`default_nettype none

module hotline_fragmenter_top #(
  // See hotline_fragmenter_kernel; the values of a build come from hotline.config.
  parameter integer      BusBits          = 64,
  parameter integer      EalSets          = 16,
  parameter integer      EalWays          = 16,
  parameter integer      EalBanks         = 2,
  parameter integer      ColdRowsMax      = 128,
  parameter integer      LookupsMax       = 64,
  parameter integer      ColdLanes        = 1,
  parameter integer      BurstBeats       = 16,
  parameter integer      ReadOutstanding  = 16,
  parameter integer      WriteOutstanding = 16,
  parameter integer      ClockKhz         = 100000,
  parameter        [31:0] BuildId          = 32'd0
) (
  input  wire                 ap_clk,
  input  wire                 ap_rst_n,
  output wire                 interrupt,

  input  wire                 s_axi_control_awvalid,
  output wire                 s_axi_control_awready,
  input  wire [11:0]          s_axi_control_awaddr,
  input  wire [2:0]           s_axi_control_awprot,
  input  wire                 s_axi_control_wvalid,
  output wire                 s_axi_control_wready,
  input  wire [31:0]          s_axi_control_wdata,
  input  wire [3:0]           s_axi_control_wstrb,
  output wire                 s_axi_control_bvalid,
  input  wire                 s_axi_control_bready,
  output wire [1:0]           s_axi_control_bresp,
  input  wire                 s_axi_control_arvalid,
  output wire                 s_axi_control_arready,
  input  wire [11:0]          s_axi_control_araddr,
  input  wire [2:0]           s_axi_control_arprot,
  output wire                 s_axi_control_rvalid,
  input  wire                 s_axi_control_rready,
  output wire [31:0]          s_axi_control_rdata,
  output wire [1:0]           s_axi_control_rresp,

  output wire                 m_axi_gmem_awvalid,
  input  wire                 m_axi_gmem_awready,
  output wire [0:0]           m_axi_gmem_awid,
  output wire [63:0]          m_axi_gmem_awaddr,
  output wire [7:0]           m_axi_gmem_awlen,
  output wire [2:0]           m_axi_gmem_awsize,
  output wire [1:0]           m_axi_gmem_awburst,
  output wire [0:0]           m_axi_gmem_awlock,
  output wire [3:0]           m_axi_gmem_awcache,
  output wire [2:0]           m_axi_gmem_awprot,
  output wire [3:0]           m_axi_gmem_awqos,
  output wire [3:0]           m_axi_gmem_awregion,
  output wire                 m_axi_gmem_wvalid,
  input  wire                 m_axi_gmem_wready,
  output wire [BusBits-1:0]   m_axi_gmem_wdata,
  output wire [BusBits/8-1:0] m_axi_gmem_wstrb,
  output wire                 m_axi_gmem_wlast,
  input  wire                 m_axi_gmem_bvalid,
  output wire                 m_axi_gmem_bready,
  input  wire [0:0]           m_axi_gmem_bid,
  input  wire [1:0]           m_axi_gmem_bresp,
  output wire                 m_axi_gmem_arvalid,
  input  wire                 m_axi_gmem_arready,
  output wire [0:0]           m_axi_gmem_arid,
  output wire [63:0]          m_axi_gmem_araddr,
  output wire [7:0]           m_axi_gmem_arlen,
  output wire [2:0]           m_axi_gmem_arsize,
  output wire [1:0]           m_axi_gmem_arburst,
  output wire [0:0]           m_axi_gmem_arlock,
  output wire [3:0]           m_axi_gmem_arcache,
  output wire [2:0]           m_axi_gmem_arprot,
  output wire [3:0]           m_axi_gmem_arqos,
  output wire [3:0]           m_axi_gmem_arregion,
  input  wire                 m_axi_gmem_rvalid,
  output wire                 m_axi_gmem_rready,
  input  wire [0:0]           m_axi_gmem_rid,
  input  wire [BusBits-1:0]   m_axi_gmem_rdata,
  input  wire [1:0]           m_axi_gmem_rresp,
  input  wire                 m_axi_gmem_rlast
);

  localparam [2:0] Size =
      BusBits == 512 ? 3'd6 : BusBits == 256 ? 3'd5 : BusBits == 128 ? 3'd4 : 3'd3;
  localparam [1:0] BurstIncr = 2'b01;
  localparam [3:0] CacheBufferable = 4'b0011;  // normal, non-cacheable, bufferable

  assign m_axi_gmem_awid      = 1'b0;
  assign m_axi_gmem_awsize    = Size;
  assign m_axi_gmem_awburst   = BurstIncr;
  assign m_axi_gmem_awlock    = 1'b0;
  assign m_axi_gmem_awcache   = CacheBufferable;
  assign m_axi_gmem_awprot    = 3'b000;
  assign m_axi_gmem_awqos     = 4'd0;
  assign m_axi_gmem_awregion  = 4'd0;
  assign m_axi_gmem_arid      = 1'b0;
  assign m_axi_gmem_arsize    = Size;
  assign m_axi_gmem_arburst   = BurstIncr;
  assign m_axi_gmem_arlock    = 1'b0;
  assign m_axi_gmem_arcache   = CacheBufferable;
  assign m_axi_gmem_arprot    = 3'b000;
  assign m_axi_gmem_arqos     = 4'd0;
  assign m_axi_gmem_arregion  = 4'd0;

  // All requests have id 0, so responses have, too.
  wire unused_ids = &{1'b0, m_axi_gmem_bid, m_axi_gmem_rid};

  hotline_fragmenter_kernel #(
    .BusBits         (BusBits),
    .EalSets         (EalSets),
    .EalWays         (EalWays),
    .EalBanks        (EalBanks),
    .ColdRowsMax     (ColdRowsMax),
    .LookupsMax      (LookupsMax),
    .ColdLanes       (ColdLanes),
    .BurstBeats      (BurstBeats),
    .ReadOutstanding (ReadOutstanding),
    .WriteOutstanding(WriteOutstanding),
    .ClockKhz        (ClockKhz),
    .BuildId         (BuildId)
  ) u_kernel (
    .clk_i                 (ap_clk),
    .rst_ni                (ap_rst_n),
    .interrupt_o           (interrupt),
    .s_axi_control_awvalid (s_axi_control_awvalid),
    .s_axi_control_awready (s_axi_control_awready),
    .s_axi_control_awaddr  (s_axi_control_awaddr),
    .s_axi_control_awprot  (s_axi_control_awprot),
    .s_axi_control_wvalid  (s_axi_control_wvalid),
    .s_axi_control_wready  (s_axi_control_wready),
    .s_axi_control_wdata   (s_axi_control_wdata),
    .s_axi_control_wstrb   (s_axi_control_wstrb),
    .s_axi_control_bvalid  (s_axi_control_bvalid),
    .s_axi_control_bready  (s_axi_control_bready),
    .s_axi_control_bresp   (s_axi_control_bresp),
    .s_axi_control_arvalid (s_axi_control_arvalid),
    .s_axi_control_arready (s_axi_control_arready),
    .s_axi_control_araddr  (s_axi_control_araddr),
    .s_axi_control_arprot  (s_axi_control_arprot),
    .s_axi_control_rvalid  (s_axi_control_rvalid),
    .s_axi_control_rready  (s_axi_control_rready),
    .s_axi_control_rdata   (s_axi_control_rdata),
    .s_axi_control_rresp   (s_axi_control_rresp),
    .m_ar_valid_o          (m_axi_gmem_arvalid),
    .m_ar_ready_i          (m_axi_gmem_arready),
    .m_ar_addr_o           (m_axi_gmem_araddr),
    .m_ar_len_o            (m_axi_gmem_arlen),
    .m_r_valid_i           (m_axi_gmem_rvalid),
    .m_r_ready_o           (m_axi_gmem_rready),
    .m_r_data_i            (m_axi_gmem_rdata),
    .m_r_resp_i            (m_axi_gmem_rresp),
    .m_r_last_i            (m_axi_gmem_rlast),
    .m_aw_valid_o          (m_axi_gmem_awvalid),
    .m_aw_ready_i          (m_axi_gmem_awready),
    .m_aw_addr_o           (m_axi_gmem_awaddr),
    .m_aw_len_o            (m_axi_gmem_awlen),
    .m_w_valid_o           (m_axi_gmem_wvalid),
    .m_w_ready_i           (m_axi_gmem_wready),
    .m_w_data_o            (m_axi_gmem_wdata),
    .m_w_strb_o            (m_axi_gmem_wstrb),
    .m_w_last_o            (m_axi_gmem_wlast),
    .m_b_valid_i           (m_axi_gmem_bvalid),
    .m_b_ready_o           (m_axi_gmem_bready),
    .m_b_resp_i            (m_axi_gmem_bresp)
  );

endmodule

`default_nettype wire
