"""Long-term memories as a retriever of LangChain (`pip install 'ewe-engine[langchain]'`)."""

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from ewe.longterm.memory_search import address, visible
from ewe.longterm.service import MemoryService


class MemoryRetriever(BaseRetriever):
    """What a user may see with an agent and what may be used for a query, best first.

    Each document has its memory's address as id, and in its metadata veracity (what the scorer believes) and
    uncertainty, both in [0, 1], source, and action: what was done last. threshold: the veracity to ask for.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    service: MemoryService
    user: str = ""
    agent: str = ""
    top_k: int = 5
    threshold: float | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        recall = self.service.search(query, visible(self.user, self.agent), self.top_k, self.threshold)
        return [
            Document(
                id=address(one.memory),
                page_content=one.memory.content,
                metadata={
                    "veracity": float(one.belief),
                    "uncertainty": float(one.uncertainty),
                    "source": f"{one.memory.source.kind}:{one.memory.source.id}",
                    "action": one.action.value,
                },
            )
            for one in recall.used
        ]
