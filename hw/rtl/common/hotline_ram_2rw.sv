// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// True dual-port RAM: two ports, each of which reads or writes in a cycle, one clock.
///
/// With `we` a port writes and its `rdata` shows the OLD word afterwards (read first); without,
/// it reads. A port may therefore exchange a word for another.
///
///   port a: en we addr wdata           | read A    | write B   |
///   port b: en we addr wdata           | write A   | read B    |
///   a_rdata_o                          |           | old A     | old B
///   b_rdata_o                          |           | old A     | old B
///
/// Throughput  2 accesses per cycle.
/// Latency     1 cycle; `*_rdata_o` keeps its value while `*_en_i` is low.
/// Stalls      None.
/// Errors      None. Two writes to one address in one cycle are forbidden (asserted); addresses
///             beyond `Depth` are undefined. A read returns the OLD data if the other port writes
///             the address in that cycle.
/// Reset       None; the contents are undefined until written.
module hotline_ram_2rw #(
  /// Bits of a word.
  parameter int unsigned Width = 32,
  /// Words; need not be a power of two.
  parameter int unsigned Depth = 512,
  localparam int unsigned AddrWidth = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic                 clk_i,

  input  logic                 a_en_i,
  input  logic                 a_we_i,
  input  logic [AddrWidth-1:0] a_addr_i,
  input  logic [Width-1:0]     a_wdata_i,
  output logic [Width-1:0]     a_rdata_o,

  input  logic                 b_en_i,
  input  logic                 b_we_i,
  input  logic [AddrWidth-1:0] b_addr_i,
  input  logic [Width-1:0]     b_wdata_i,
  output logic [Width-1:0]     b_rdata_o
);

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $fatal(1, "%m: Width and Depth must be at least 1");
  end

  (* ram_style = "block" *)
  logic [Width-1:0] mem [Depth];

  // Two processes, one per port, are what synthesis tools infer a true dual-port RAM from;
  // always_ff forbids a second writer.
  always @(posedge clk_i) begin
    if (a_en_i) begin
      a_rdata_o <= mem[a_addr_i];
      if (a_we_i) begin
        mem[a_addr_i] <= a_wdata_i;
      end
    end
  end

  always @(posedge clk_i) begin
    if (b_en_i) begin
      b_rdata_o <= mem[b_addr_i];
      if (b_we_i) begin
        mem[b_addr_i] <= b_wdata_i;
      end
    end
  end

`ifndef SYNTHESIS
  // There is no reset here: what the user's registers hold before its first edge does not count.
  logic started_q;
  initial started_q = 1'b0;
  always @(posedge clk_i) started_q <= 1'b1;

  a_one_writer : assert property (@(posedge clk_i)
      !(started_q && a_en_i && a_we_i && b_en_i && b_we_i && a_addr_i == b_addr_i));
`endif

endmodule
