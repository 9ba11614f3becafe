// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

/// Joins the write channels of the core and of the record writer into one.
///
/// Addresses are granted one at a time, the record writer first (it has one burst per job). A FIFO
/// remembers the order of the grants and lets the data through in that order; responses find their
/// way by `user` (1: record), which the guard keeps with each burst.
///
///   core_aw --+--> m_aw (+ user)      core_w --+--> m_w       m_b (+ user) --+--> core_b
///   rec_aw  --+                       rec_w  --+                             +--> rec_b
///             +--> [order of grants] ---select-+
///
/// Throughput  1 address and 1 data beat per cycle, without a bubble between bursts.
/// Latency     0 cycles; data follow their address by at least one cycle.
/// Stalls      Addresses run ahead of the data by at most `Ahead` bursts.
/// Errors      None of its own.
/// Reset       Forgets the grants.
///
/// Paths through it are combinational from valid to valid and from ready to ready; the guard's
/// spill registers lie behind it.
module hotline_axi_mux #(
  /// Width of the data bus.
  parameter int unsigned BusBits = 64,
  /// Bursts whose address may be granted before their data are through, at least 2.
  parameter int unsigned Ahead = 16,
  localparam int unsigned StrbBits = BusBits / 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                core_aw_valid_i,
  output logic                core_aw_ready_o,
  input  logic [63:0]         core_aw_addr_i,
  input  logic [7:0]          core_aw_len_i,
  input  logic                core_w_valid_i,
  output logic                core_w_ready_o,
  input  logic [BusBits-1:0]  core_w_data_i,
  input  logic [StrbBits-1:0] core_w_strb_i,
  input  logic                core_w_last_i,
  output logic                core_b_valid_o,
  input  logic                core_b_ready_i,

  input  logic                rec_aw_valid_i,
  output logic                rec_aw_ready_o,
  input  logic [63:0]         rec_aw_addr_i,
  input  logic [7:0]          rec_aw_len_i,
  input  logic                rec_w_valid_i,
  output logic                rec_w_ready_o,
  input  logic [BusBits-1:0]  rec_w_data_i,
  input  logic [StrbBits-1:0] rec_w_strb_i,
  input  logic                rec_w_last_i,
  output logic                rec_b_valid_o,
  input  logic                rec_b_ready_i,

  output logic                m_aw_valid_o,
  input  logic                m_aw_ready_i,
  output logic [63:0]         m_aw_addr_o,
  output logic [7:0]          m_aw_len_o,
  output logic                m_aw_user_o,
  output logic                m_w_valid_o,
  input  logic                m_w_ready_i,
  output logic [BusBits-1:0]  m_w_data_o,
  output logic [StrbBits-1:0] m_w_strb_o,
  output logic                m_w_last_o,
  input  logic                m_b_valid_i,
  output logic                m_b_ready_o,
  input  logic                m_b_user_i
);

  if (Ahead < 2) begin : gen_bad_ahead
    $fatal(1, "%m: Ahead must be at least 2");
  end

  // ------------------------------------------------------------------------------------- addresses

  logic order_ready;
  logic aw_valid;
  logic aw_transfer;
  logic take_record;
  // A grant once offered stays, so that the payload is stable.
  logic held_q;
  logic held_record_q;

  assign take_record     = held_q ? held_record_q : rec_aw_valid_i;
  assign aw_valid        = take_record ? rec_aw_valid_i : core_aw_valid_i;
  assign m_aw_valid_o    = aw_valid && order_ready;
  assign m_aw_addr_o     = take_record ? rec_aw_addr_i : core_aw_addr_i;
  assign m_aw_len_o      = take_record ? rec_aw_len_i : core_aw_len_i;
  assign m_aw_user_o     = take_record;
  assign aw_transfer     = m_aw_valid_o && m_aw_ready_i;
  assign rec_aw_ready_o  = take_record && m_aw_ready_i && order_ready;
  assign core_aw_ready_o = !take_record && m_aw_ready_i && order_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
    end else begin
      held_q <= aw_valid && !aw_transfer;
    end
  end

  // Not reset: qualified by `held_q`.
  always_ff @(posedge clk_i) held_record_q <= take_record;

  // ------------------------------------------------------------------------------------------ data

  logic order_valid;
  logic order_record;
  logic w_transfer_last;

  hotline_stream_fifo #(
    .Width(1),
    .Depth(Ahead)
  ) u_order (
    .clk_i,
    .rst_ni,
    .flush_i    (1'b0),
    .in_valid_i (aw_valid && m_aw_ready_i),
    .in_ready_o (order_ready),
    .in_data_i  (take_record),
    .out_valid_o(order_valid),
    .out_ready_i(w_transfer_last),
    .out_data_o (order_record),
    .count_o    ()
  );

  assign m_w_valid_o     = order_valid && (order_record ? rec_w_valid_i : core_w_valid_i);
  assign m_w_data_o      = order_record ? rec_w_data_i : core_w_data_i;
  assign m_w_strb_o      = order_record ? rec_w_strb_i : core_w_strb_i;
  assign m_w_last_o      = order_record ? rec_w_last_i : core_w_last_i;
  assign rec_w_ready_o   = order_valid && order_record && m_w_ready_i;
  assign core_w_ready_o  = order_valid && !order_record && m_w_ready_i;
  assign w_transfer_last = m_w_valid_o && m_w_ready_i && m_w_last_o;

  // ------------------------------------------------------------------------------------- responses

  assign rec_b_valid_o  = m_b_valid_i && m_b_user_i;
  assign core_b_valid_o = m_b_valid_i && !m_b_user_i;
  assign m_b_ready_o    = m_b_user_i ? rec_b_ready_i : core_b_ready_i;

`ifndef SYNTHESIS
  a_aw_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_aw_valid_o && !m_aw_ready_i |=>
      m_aw_valid_o && $stable({m_aw_addr_o, m_aw_len_o, m_aw_user_o}));
  a_w_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      m_w_valid_o && !m_w_ready_i |=>
      m_w_valid_o && $stable({m_w_data_o, m_w_strb_o, m_w_last_o}));
`endif

endmodule
