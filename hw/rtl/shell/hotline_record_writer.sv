// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Writes one 64-byte completion record as one AXI burst.
///
/// `start_i` begins it; address and record must be stable from then until `done_o`.
///
///   start_i | aw, w w w w w w w w(last) | ... | b: done_o, error_o
///
/// Throughput  One record at a time.
/// Latency     64 bytes / bus beats, plus the memory's latency.
/// Stalls      None.
/// Errors      `error_o` with `done_o`: the response was SLVERR or DECERR.
/// Reset       Forgets the record.
module hotline_record_writer #(
  /// Width of the data bus, 64 to 512.
  parameter int unsigned BusBits = 64,
  localparam int unsigned StrbBits = BusBits / 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                start_i,
  input  logic [63:0]         addr_i,
  input  logic [511:0]        record_i,
  output logic                done_o,
  output logic                error_o,

  output logic                aw_valid_o,
  input  logic                aw_ready_i,
  output logic [63:0]         aw_addr_o,
  output logic [7:0]          aw_len_o,
  output logic                w_valid_o,
  input  logic                w_ready_i,
  output logic [BusBits-1:0]  w_data_o,
  output logic [StrbBits-1:0] w_strb_o,
  output logic                w_last_o,
  input  logic                b_valid_i,
  output logic                b_ready_o,
  input  logic [1:0]          b_resp_i
);

  localparam int unsigned Beats = 512 / BusBits;
  localparam int unsigned BeatBits = Beats > 1 ? $clog2(Beats) : 1;
  localparam logic [BeatBits-1:0] LastBeat = BeatBits'(Beats - 1);

  logic                aw_valid_q;
  logic                w_valid_q;
  logic [BeatBits-1:0] beat_q;
  logic                unused_resp;

  assign aw_valid_o = aw_valid_q;
  assign aw_addr_o  = addr_i;
  assign aw_len_o   = 8'(Beats - 1);
  assign w_valid_o  = w_valid_q;
  assign w_data_o   = record_i[32'(beat_q)*BusBits+:BusBits];
  assign w_strb_o   = '1;
  assign w_last_o   = beat_q == LastBeat;
  assign b_ready_o  = 1'b1;
  assign done_o     = b_valid_i;
  assign error_o    = b_resp_i[1];
  // EXOKAY cannot come: no access is exclusive.
  assign unused_resp = b_resp_i[0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_valid_q <= 1'b0;
      w_valid_q  <= 1'b0;
      beat_q     <= '0;
    end else begin
      if (start_i) begin
        aw_valid_q <= 1'b1;
        w_valid_q  <= 1'b1;
        beat_q     <= '0;
      end
      if (aw_valid_q && aw_ready_i) begin
        aw_valid_q <= 1'b0;
      end
      if (w_valid_q && w_ready_i) begin
        w_valid_q <= !w_last_o;
        beat_q    <= w_last_o ? '0 : beat_q + 1'b1;
      end
    end
  end

endmodule
