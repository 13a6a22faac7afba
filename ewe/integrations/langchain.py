"""Long-term memories as a retriever of LangChain (`pip install 'ewe-engine[langchain]'`)."""

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from ewe.config.config_evidence import SEARCH_TOP_K
from ewe.longterm.memory_api import Memory
from ewe.longterm.memory_search import address
from ewe.longterm.query_time import Time


class MemoryRetriever(BaseRetriever):
    """What may be used of a user's memories for a query, best first.

    top_k, threshold, as_of: as `Memory.search` takes them; without `as_of` a query that names a time ("in 2024") is
    answered for that time.

    Each document has its memory's address as id, and in its metadata veracity (what the scorer believes) and
    uncertainty, both in [0, 1], source, and action: what was done last.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory
    top_k: int = SEARCH_TOP_K
    threshold: float | None = None
    as_of: Time | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document(
                id=address(one.memory),
                page_content=one.content,
                metadata={
                    "veracity": float(one.belief),
                    "uncertainty": float(one.uncertainty),
                    "source": f"{one.memory.source.kind}:{one.memory.source.id}",
                    "action": one.action.value,
                },
            )
            for one in self.memory.search(query, self.top_k, threshold=self.threshold, as_of=self.as_of)
        ]
