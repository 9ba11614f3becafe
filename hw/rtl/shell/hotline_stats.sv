// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Event counters behind the register map.
///
/// Bit n of `pulse_i` high for a cycle adds 1 to counter n.
///
/// Throughput  One event per counter and cycle.
/// Latency     2 cycles from the pulse to the count (pulses are registered first, so that they may
///             come from deep logic).
/// Stalls      None.
/// Errors      None; counters wrap at 2**32.
/// Reset       All counters are 0.
module hotline_stats #(
  /// Number of counters.
  parameter int unsigned Counters = 9
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic [Counters-1:0]       pulse_i,
  output logic [Counters-1:0][31:0] count_o
);

  logic [Counters-1:0]       pulse_q;
  logic [Counters-1:0][31:0] count_q;

  assign count_o = count_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pulse_q <= '0;
      count_q <= '0;
    end else begin
      pulse_q <= pulse_i;
      for (int unsigned i = 0; i < Counters; i++) begin
        count_q[i] <= count_q[i] + 32'(pulse_q[i]);
      end
    end
  end

endmodule
