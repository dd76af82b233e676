"""Why a run ended, and what its model calls have cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("runs", sa.Column("ended", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("cost", sa.Double(), server_default="0", nullable=False))


def downgrade() -> None:
    """Remove them."""
    op.drop_column("runs", "cost")
    op.drop_column("runs", "ended")
