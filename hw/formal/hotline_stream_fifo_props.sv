// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_stream_fifo`: what goes in comes out, in order, once, and promptly.
///
/// Any one beat is followed from its acceptance to its delivery: `pick_i` chooses it. What holds for
/// whichever beat is chosen holds for all.
module hotline_stream_fifo_props #(
  parameter int unsigned Width    = 2,
  parameter int unsigned Depth    = 4,
  parameter int unsigned LutDepth = 64,
  parameter int unsigned LutBits  = 0
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             flush_i,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_ready_i,
  input logic             pick_i
);

  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam bit UseBlock = Depth > LutDepth && Depth * Width > LutBits;

  logic                  in_ready;
  logic                  out_valid;
  logic [Width-1:0]      out_data;
  logic [CountWidth-1:0] count;

  hotline_stream_fifo #(
    .Width(Width), .Depth(Depth), .LutDepth(LutDepth), .LutBits(LutBits)
  ) dut (
    .clk_i, .rst_ni, .flush_i,
    .in_valid_i, .in_ready_o(in_ready), .in_data_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data),
    .count_o(count)
  );

  logic started_q = 1'b0;
  logic after_reset_q;
  logic pushed_q;
  logic full_q;
  logic held_q;
  logic [Width-1:0] held_data_q;
  logic in_transfer;
  logic out_transfer;

  assign in_transfer  = in_valid_i && in_ready;
  assign out_transfer = out_valid && out_ready_i;

  // The chosen beat: its value, and how many are to be delivered before it.
  logic                  follow_q;
  logic [Width-1:0]      value_q;
  logic [CountWidth-1:0] before_q;

  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    after_reset_q <= !rst_ni;
    pushed_q      <= in_transfer;
    held_q        <= rst_ni && !flush_i && out_valid && !out_ready_i;
    held_data_q   <= out_data;
    if (!rst_ni || flush_i) begin
      follow_q <= 1'b0;
      full_q   <= 1'b0;
    end else begin
      full_q <= full_q || 32'(count) == Depth;
      if (follow_q && out_transfer) begin
        follow_q <= before_q != '0;
        before_q <= before_q - 1'b1;
      end else if (!follow_q && in_transfer && pick_i) begin
        follow_q <= 1'b1;
        value_q  <= in_data_i;
        before_q <= count - CountWidth'(out_transfer);
      end
    end
  end

  // Where the chosen beat is. The output register of block RAM holds the oldest beat.
  logic        registered;
  logic [31:0] place;
  if (UseBlock) begin : gen_block
    assign registered = dut.gen_block.out_valid_q;
  end else begin : gen_lut
    assign registered = 1'b0;
  end
  assign place = 32'(dut.read_q) + 32'(before_q) - 32'(registered);

  logic [Width-1:0] stored;
  if (UseBlock) begin : gen_stored_block
    assign stored = dut.gen_block.u_ram.mem[place >= Depth ? place - Depth : place];
  end else begin : gen_stored_lut
    assign stored = dut.gen_lut.u_ram.mem[place >= Depth ? place - Depth : place];
  end

  logic [31:0] write_place;
  assign write_place = 32'(dut.read_q) + 32'(count) - 32'(registered);

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      assume (!rst_ni);
    end else begin
      // Promises.
      a_no_overflow: assert (32'(count) <= Depth);
      if (!after_reset_q) a_ready: assert (in_ready == (32'(count) != Depth));
      if (after_reset_q) a_ready_reset: assert (!in_ready);
      if (!out_valid && count != '0) a_prompt: assert (UseBlock && count == 1 && pushed_q);
      if (out_valid) a_not_empty: assert (count != '0);
      if (held_q) a_stable: assert (out_valid && out_data == held_data_q);
      if (follow_q && before_q == '0 && out_valid) a_order: assert (out_data == value_q);
      if (follow_q) a_not_lost: assert (before_q < count);

      // What makes them inductive.
      i_read:  assert (32'(dut.read_q) < Depth);
      i_write: assert (32'(dut.write_q) ==
                       (write_place >= Depth ? write_place - Depth : write_place));
      if (follow_q && !(registered && before_q == '0)) i_stored: assert (stored == value_q);
      if (held_q && UseBlock) i_held: assert (registered);

      c_full:         cover (rst_ni && 32'(count) == Depth);
      c_full_drained: cover (full_q && count == '0);
      c_order:        cover (follow_q && before_q == '0 && out_transfer && full_q);
      // One place cannot be filled and emptied at once.
      c_both:         cover (Depth == 1 || (rst_ni && in_transfer && out_transfer));
    end
  end

endmodule
