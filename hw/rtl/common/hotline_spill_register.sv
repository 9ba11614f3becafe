// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Cuts every combinational path of a valid/ready stream.
///
/// A beat is any word of `Width` bits. Two places hold beats: the output register, and a skid
/// register that takes the beat which was already accepted when the output stalls.
///
///   in_* --+--------------> [out] --> out_*      in_ready_o : "skid is free", a flip-flop
///          +--> [skid] -----^
///
/// Throughput  1 beat per cycle, without a bubble after a stall.
/// Latency     1 cycle.
/// Stalls      `in_ready_o` falls one cycle after the output stalls with a beat in it; it depends
///             on no input of the same cycle.
/// Errors      None.
/// Reset       Drops both beats. `in_ready_o` is low in reset and one cycle beyond its end.
module hotline_spill_register #(
  /// Bits of a beat, at least 1.
  parameter int unsigned Width = 32
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);

  if (Width < 1) begin : gen_bad_width
    $fatal(1, "%m: Width must be at least 1");
  end

  logic             ready_q;
  logic             out_valid_q;
  logic             skid_valid_q;
  logic [Width-1:0] out_q;
  logic [Width-1:0] skid_q;

  logic             in_transfer;
  logic             out_free;
  logic             skid_valid_d;

  assign in_ready_o  = ready_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;

  assign in_transfer  = in_valid_i && ready_q;
  assign out_free     = !out_valid_q || out_ready_i;
  assign skid_valid_d = !out_free && (skid_valid_q || in_transfer);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ready_q      <= 1'b0;
      out_valid_q  <= 1'b0;
      skid_valid_q <= 1'b0;
    end else begin
      ready_q      <= !skid_valid_d;
      skid_valid_q <= skid_valid_d;
      if (out_free) begin
        out_valid_q <= skid_valid_q || in_transfer;
      end
    end
  end

  // Not reset: qualified by the valid bits.
  always_ff @(posedge clk_i) begin
    if (out_free) begin
      out_q <= skid_valid_q ? skid_q : in_data_i;
    end
    if (in_transfer) begin
      skid_q <= in_data_i;
    end
  end

`ifndef SYNTHESIS
  a_in_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_valid_i && !in_ready_o |=> in_valid_i && $stable(in_data_i));
  a_out_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      out_valid_o && !out_ready_i |=> out_valid_o && $stable(out_data_o));
  a_no_overflow : assert property (@(posedge clk_i) disable iff (!rst_ni)
      in_valid_i && in_ready_o |-> !skid_valid_q);
`endif

endmodule
