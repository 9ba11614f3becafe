// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// First-word-fall-through FIFO of a valid/ready stream, of any depth.
///
/// A beat is any word of `Width` bits. Shallow or small FIFOs live in LUT RAM; deep ones in block
/// RAM, whose output register is the last of the `Depth` places and is filled ahead of demand.
///
///   in_* --> [ RAM ] --> [output register, block RAM only] --> out_*
///                 `count_o` counts the beats in both
///
/// Throughput  1 beat per cycle (LUT RAM: Depth >= 2; block RAM: Depth >= 3).
/// Latency     LUT RAM 1 cycle, block RAM 2 cycles, into an empty FIFO.
/// Stalls      `in_ready_o` is low iff `Depth` beats are held, in reset, and in the first cycle
///             after it; it is a flip-flop.
/// Errors      None: overflow is impossible.
/// Reset       Empties the FIFO. `flush_i` does the same in one cycle and also drops a beat that is
///             accepted in that cycle; `out_valid_o` may fall then without a transfer.
module hotline_stream_fifo #(
  /// Bits of a beat.
  parameter int unsigned Width = 32,
  /// Beats that the FIFO holds, at least 1.
  parameter int unsigned Depth = 16,
  /// Block RAM is used for FIFOs deeper than this ...
  parameter int unsigned LutDepth = 64,
  /// ... that also hold more bits than this.
  parameter int unsigned LutBits = 2048,
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  /// Synchronous clear.
  input  logic                  flush_i,

  input  logic                  in_valid_i,
  output logic                  in_ready_o,
  input  logic [Width-1:0]      in_data_i,

  output logic                  out_valid_o,
  input  logic                  out_ready_i,
  output logic [Width-1:0]      out_data_o,

  /// Beats held.
  output logic [CountWidth-1:0] count_o
);

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $fatal(1, "%m: Width and Depth must be at least 1");
  end

  localparam bit UseBlock = Depth > LutDepth && Depth * Width > LutBits;
  localparam int unsigned AddrWidth = Depth > 1 ? $clog2(Depth) : 1;
  localparam logic [AddrWidth-1:0] LastAddr = AddrWidth'(Depth - 1);

  logic                  ready_q;
  logic [CountWidth-1:0] count_q;
  logic [CountWidth-1:0] count_d;
  logic [AddrWidth-1:0]  write_q;
  logic [AddrWidth-1:0]  read_q;

  logic in_transfer;
  logic out_transfer;
  logic ram_read;

  assign in_ready_o   = ready_q;
  assign count_o      = count_q;
  assign in_transfer  = in_valid_i && ready_q;
  assign out_transfer = out_valid_o && out_ready_i;
  assign count_d      = count_q + CountWidth'(in_transfer) - CountWidth'(out_transfer);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ready_q <= 1'b0;
      count_q <= '0;
      write_q <= '0;
      read_q  <= '0;
    end else if (flush_i) begin
      ready_q <= 1'b1;
      count_q <= '0;
      write_q <= '0;
      read_q  <= '0;
    end else begin
      ready_q <= count_d != CountWidth'(Depth);
      count_q <= count_d;
      if (in_transfer) begin
        write_q <= write_q == LastAddr ? '0 : write_q + 1'b1;
      end
      if (ram_read) begin
        read_q <= read_q == LastAddr ? '0 : read_q + 1'b1;
      end
    end
  end

  if (UseBlock) begin : gen_block
    // The output register belongs to the RAM; `out_valid_q` says that it holds a beat.
    logic out_valid_q;
    logic ram_holds;

    assign ram_holds   = count_q != CountWidth'(out_valid_q);
    assign ram_read    = ram_holds && (!out_valid_q || out_ready_i);
    assign out_valid_o = out_valid_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni || flush_i) begin
        out_valid_q <= 1'b0;
      end else if (!out_valid_q || out_ready_i) begin
        out_valid_q <= ram_holds;
      end
    end

    hotline_ram_1r1w #(
      .Width(Width),
      .Depth(Depth)
    ) u_ram (
      .clk_i,
      .we_i   (in_transfer),
      .waddr_i(write_q),
      .wdata_i(in_data_i),
      .re_i   (ram_read),
      .raddr_i(read_q),
      .rdata_o(out_data_o)
    );
  end else begin : gen_lut
    assign out_valid_o = count_q != '0;
    assign ram_read    = out_transfer;

    hotline_ram_lutram #(
      .Width(Width),
      .Depth(Depth)
    ) u_ram (
      .clk_i,
      .we_i   (in_transfer),
      .waddr_i(write_q),
      .wdata_i(in_data_i),
      .raddr_i(read_q),
      .rdata_o(out_data_o)
    );
  end

`ifndef SYNTHESIS
  a_in_stable : assert property (@(posedge clk_i) disable iff (!rst_ni || flush_i)
      in_valid_i && !in_ready_o |=> in_valid_i && $stable(in_data_i));
  a_out_stable : assert property (@(posedge clk_i) disable iff (!rst_ni || flush_i)
      out_valid_o && !out_ready_i |=> out_valid_o && $stable(out_data_o));
  a_count : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni) |-> 32'(count_q) <= Depth);
`endif

endmodule
