// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_spill_register`: no beat is lost, doubled, changed or overtaken, and the output
/// offers a beat in the cycle after it came.
///
/// Any one beat is followed: `pick_i` chooses it.
module hotline_spill_register_props #(
  parameter int unsigned Width = 4
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_ready_i,
  input logic             pick_i
);

  logic             in_ready;
  logic             out_valid;
  logic [Width-1:0] out_data;

  hotline_spill_register #(
    .Width(Width)
  ) dut (
    .clk_i, .rst_ni,
    .in_valid_i, .in_ready_o(in_ready), .in_data_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data)
  );

  logic             started_q = 1'b0;
  logic             after_reset_q;
  logic             held_q;
  logic [Width-1:0] held_data_q;
  logic             in_transfer;
  logic             out_transfer;
  // Beats accepted and not delivered.
  logic [1:0]       count_q;
  logic             follow_q;
  logic [Width-1:0] value_q;
  logic             before_q;

  assign in_transfer  = in_valid_i && in_ready;
  assign out_transfer = out_valid && out_ready_i;

  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    after_reset_q <= !rst_ni;
    held_q        <= rst_ni && out_valid && !out_ready_i;
    held_data_q   <= out_data;
    if (!rst_ni) begin
      count_q  <= '0;
      follow_q <= 1'b0;
    end else begin
      count_q <= count_q + 2'(in_transfer) - 2'(out_transfer);
      if (follow_q && out_transfer) begin
        follow_q <= before_q;
        before_q <= 1'b0;
      end else if (!follow_q && in_transfer && pick_i) begin
        follow_q <= 1'b1;
        value_q  <= in_data_i;
        before_q <= count_q != 2'(out_transfer);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      assume (!rst_ni);
    end else begin
      // Promises.
      a_two:     assert (count_q <= 2);
      a_prompt:  assert (out_valid == (count_q != '0));
      if (!after_reset_q) a_ready: assert (in_ready == (count_q != 2));
      if (after_reset_q) a_ready_reset: assert (!in_ready && !out_valid);
      if (held_q) a_stable: assert (out_valid && out_data == held_data_q);
      if (follow_q && !before_q) a_order: assert (out_valid && out_data == value_q);

      // What makes them inductive.
      i_count: assert (count_q == 2'(dut.out_valid_q) + 2'(dut.skid_valid_q));
      if (follow_q && before_q) i_skid: assert (dut.skid_valid_q && dut.skid_q == value_q);

      c_two:   cover (rst_ni && count_q == 2);
      c_order: cover (follow_q && before_q && out_transfer);
      c_both:  cover (rst_ni && in_transfer && out_transfer);
    end
  end

endmodule
