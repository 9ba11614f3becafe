// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Small RAM with one write port and one unregistered read port (LUT RAM).
///
/// For FIFOs of a few dozen words; deeper ones belong into `hotline_ram_1r1w`.
///
///   write: we_i waddr_i wdata_i        | cycle 0: write A |
///   raddr_i -> rdata_o (same cycle)    | old A            | new A
///
/// Throughput  1 write and 1 read per cycle.
/// Latency     0 cycles from `raddr_i` to `rdata_o`; a written word is seen in the next cycle.
/// Stalls      None.
/// Errors      None. Addresses beyond `Depth` are undefined.
/// Reset       None; the contents are undefined until written.
module hotline_ram_lutram #(
  /// Bits of a word.
  parameter int unsigned Width = 32,
  /// Words; need not be a power of two.
  parameter int unsigned Depth = 16,
  localparam int unsigned AddrWidth = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic                 clk_i,

  input  logic                 we_i,
  input  logic [AddrWidth-1:0] waddr_i,
  input  logic [Width-1:0]     wdata_i,

  input  logic [AddrWidth-1:0] raddr_i,
  output logic [Width-1:0]     rdata_o
);

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $fatal(1, "%m: Width and Depth must be at least 1");
  end

  (* ram_style = "distributed" *)
  logic [Width-1:0] mem [Depth];

  assign rdata_o = mem[raddr_i];

  always_ff @(posedge clk_i) begin
    if (we_i) begin
      mem[waddr_i] <= wdata_i;
    end
  end

endmodule
