// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Proof of `hotline_rr_arbiter`: one grant, to one that asks, if any asks; and nobody who keeps
/// asking sees more than `Count - 1` others served first. `who_i` is any one of them.
module hotline_rr_arbiter_props #(
  parameter int unsigned Count = 3,
  localparam int unsigned IndexWidth = Count > 1 ? $clog2(Count) : 1
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [Count-1:0]      req_i,
  input logic                  advance_i,
  input logic [IndexWidth-1:0] who_i
);

  logic [Count-1:0]      grant;
  logic [IndexWidth-1:0] index;

  hotline_rr_arbiter #(
    .Count(Count)
  ) dut (
    .clk_i, .rst_ni, .req_i, .advance_i, .grant_o(grant), .index_o(index)
  );

  logic                  started_q = 1'b0;
  logic [IndexWidth-1:0] who_q;
  // Others served while `who_q` has been asking.
  logic [31:0]           waited_q;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    who_q     <= who_i;
    if (!rst_ni || !req_i[who_i] || (advance_i && grant[who_i])) begin
      waited_q <= '0;
    end else if (advance_i) begin
      waited_q <= waited_q + 1;
    end
  end

  // Requests before whose turn it is not again: the zeros of the turn mask, from request 0 up.
  logic [31:0] turn;
  logic [31:0] distance;
  logic        thermometer;
  always_comb begin
    turn = '0;
    thermometer = 1'b1;
    for (int unsigned i = 1; i < Count; i++) begin
      if (dut.turn_q[i-1] && !dut.turn_q[i]) thermometer = 1'b0;
    end
    for (int unsigned i = 0; i < Count; i++) begin
      if (!dut.turn_q[i]) turn = turn + 1;
    end
    distance = 32'(who_i) >= turn ? 32'(who_i) - turn : 32'(who_i) + Count - turn;
  end

  always_ff @(posedge clk_i) begin
    assume (32'(who_i) < Count);
    if (!started_q) begin
      assume (!rst_ni);
    end else begin
      assume (who_i == who_q);

      // Promises.
      a_one:    assert ((grant & (grant - 1'b1)) == '0);
      a_asked:  assert ((grant & ~req_i) == '0);
      a_serves: assert ((grant != '0) == (req_i != '0));
      if (req_i != '0) a_index: assert (grant[index] && 32'(index) < Count);
      if (req_i == '0) a_index_none: assert (index == '0);
      a_fair:   assert (waited_q < Count);

      // What makes them inductive: the mask is a thermometer, and each grant shortens the way.
      i_mask:     assert (thermometer);
      i_distance: assert (waited_q + distance < Count || waited_q == '0);

      c_waits: cover (waited_q == Count - 1);
      c_last:  cover (rst_ni && grant[Count-1] && advance_i);
    end
  end

endmodule
