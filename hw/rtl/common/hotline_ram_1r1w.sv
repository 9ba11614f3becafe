// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Simple dual-port RAM: one write port, one registered read port, one clock.
///
/// This file, `hotline_ram_2rw` and `hotline_ram_lutram` are the only places with inference
/// attributes.
///
///   write: we_i waddr_i wdata_i        | cycle 0: write A    |
///   read : re_i raddr_i                | cycle 0: read A     | cycle 1: read A
///   rdata_o                            |                     | old A           | new A
///
/// Throughput  1 write and 1 read per cycle.
/// Latency     1 cycle; `rdata_o` keeps its value while `re_i` is low.
/// Stalls      None.
/// Errors      None. Addresses beyond `Depth` are undefined.
///             Read and write of one address in one cycle: the read returns the OLD data.
/// Reset       None; the contents and `rdata_o` are undefined until written and read.
module hotline_ram_1r1w #(
  /// Bits of a word.
  parameter int unsigned Width = 32,
  /// Words; need not be a power of two.
  parameter int unsigned Depth = 512,
  localparam int unsigned AddrWidth = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic                 clk_i,

  input  logic                 we_i,
  input  logic [AddrWidth-1:0] waddr_i,
  input  logic [Width-1:0]     wdata_i,

  input  logic                 re_i,
  input  logic [AddrWidth-1:0] raddr_i,
  output logic [Width-1:0]     rdata_o
);

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $fatal(1, "%m: Width and Depth must be at least 1");
  end

  (* ram_style = "block" *)
  logic [Width-1:0] mem [Depth];

  always_ff @(posedge clk_i) begin
    if (we_i) begin
      mem[waddr_i] <= wdata_i;
    end
    if (re_i) begin
      rdata_o <= mem[raddr_i];
    end
  end

endmodule
