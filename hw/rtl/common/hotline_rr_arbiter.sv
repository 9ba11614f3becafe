// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Round-robin choice among `Count` requests.
///
/// The request after the one served last is served first. The choice is combinational;
/// `advance_i` says that it was used, and moves the turn.
///
///   req_i     0110  0110  0111
///   grant_o   0010  0100  0001      (advance_i high throughout)
///
/// Throughput  1 grant per cycle.
/// Latency     0 cycles from `req_i` to `grant_o`.
/// Stalls      None. A request that stays is served after at most `Count - 1` others.
/// Errors      None; without a request `grant_o` is 0 and `index_o` is 0.
/// Reset       The turn is at request 0.
module hotline_rr_arbiter #(
  /// Number of requests, at least 1.
  parameter int unsigned Count = 2,
  localparam int unsigned IndexWidth = Count > 1 ? $clog2(Count) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [Count-1:0]      req_i,
  input  logic                  advance_i,
  output logic [Count-1:0]      grant_o,
  output logic [IndexWidth-1:0] index_o
);

  if (Count < 1) begin : gen_bad_count
    $fatal(1, "%m: Count must be at least 1");
  end

  // Ones at the requests whose turn comes before the first is asked again.
  logic [Count-1:0] turn_q;
  logic [Count-1:0] preferred;
  logic [Count-1:0] candidates;

  assign preferred  = req_i & turn_q;
  assign candidates = preferred != '0 ? preferred : req_i;

  always_comb begin
    grant_o = '0;
    index_o = '0;
    for (int unsigned i = Count; i > 0; i--) begin
      if (candidates[i-1]) begin
        grant_o      = '0;
        grant_o[i-1] = 1'b1;
        index_o      = IndexWidth'(i - 1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= '1;
    end else if (advance_i && req_i != '0) begin
      // Strictly above the granted one.
      for (int unsigned i = 0; i < Count; i++) begin
        turn_q[i] <= i > 32'(index_o);
      end
    end
  end

`ifndef SYNTHESIS
  a_one_hot : assert property (@(posedge clk_i) $onehot0(grant_o));
  a_granted : assert property (@(posedge clk_i) (grant_o & ~req_i) == '0);
  a_serves  : assert property (@(posedge clk_i) req_i != '0 |-> grant_o != '0);
`endif

endmodule
